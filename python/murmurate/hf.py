"""The Trainer of `transformers`.

    import murmurate.hf as mh

    set_seed(mh.seed())                                # the same first values on every daemon
    trainer = mh.SwarmTrainer(model, arguments, train_dataset=part, eval_dataset=held)
    trainer.train()

`SwarmTrainer` tells the daemon the mean loss and the samples of every optimizer step, with those of all
its accumulated batches, and ends when training is over. A checkpoint keeps the states of the optimizer
and of the learning rate's schedule. For another trainer: `class Mine(SwarmMixin, SFTTrainer): pass`.

- `max_steps` must be more than the inner steps of the run; the schedule counts to it.
- The dataset is divided once, when the script starts, and its order begins again after a restart. So each
  daemon needs `shards.index` and `shards.of`; without them `mh.shard()` raises.
- The preset must exchange deltas; the daemon refuses one that exchanges gradients.
- Started by torchrun, the ranks are one loop, see `murmurate.torch`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from accelerate.utils import find_batch_size
from transformers import Trainer, TrainerCallback

from . import torch as _torch
from ._swarm import Swarm, seed, shard
from ._types import Buffers, Score

__all__ = ["SwarmMixin", "SwarmTrainer", "seed", "shard"]


if TYPE_CHECKING:
    # A mixin is what it is mixed into.
    from transformers import Trainer as _Base
else:
    _Base = object


class SwarmMixin(_Base):
    """Attaches a Trainer to the daemon when `train()` starts. Name it before the Trainer's class.

    buffers: as that of `murmurate.torch.attach`.
    """

    swarm: Swarm | None = None

    def __init__(self, *args: Any, buffers: Buffers = "local", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._swarm_buffers = buffers
        self._step_loss: Any = 0.0
        self._step_samples = 0
        self.add_callback(_Steps(self))

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        samples = find_batch_size(inputs)
        # The Trainer has divided it by the number of accumulated batches, or by all their tokens.
        loss = super().training_step(model, inputs, *args, **kwargs)
        self._step_loss += loss.detach()
        self._step_samples += samples
        return loss

    def swarm_evaluate(self, model: Any) -> Score:
        """Mean loss on `eval_dataset`, each batch weighted by its samples. Override it to return an
        accuracy too."""
        total, samples = 0.0, 0
        for inputs in self.get_eval_dataloader():
            inputs = self._prepare_inputs(inputs)
            count = find_batch_size(inputs)
            loss: Any = self.compute_loss(model, inputs)
            total += float(loss) * count
            samples += count
        return total / samples, None, samples


class SwarmTrainer(SwarmMixin, Trainer):
    """A Trainer that is attached to the daemon while it trains."""


class _Steps(TrainerCallback):
    """Attaches when optimizer and schedule exist, and reports the end of every optimizer step."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_train_begin(
        self, args: Any, state: Any, control: Any, optimizer: Any = None, lr_scheduler: Any = None, **_: Any
    ) -> None:
        evaluate = self._trainer.swarm_evaluate if self._trainer.eval_dataset is not None else None
        both = _Both(optimizer, lr_scheduler)
        model, buffers = self._trainer.model_wrapped, self._trainer._swarm_buffers
        self._trainer.swarm = _torch.attach(model, both, evaluate, buffers=buffers)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        trainer = self._trainer
        loss, samples = trainer._step_loss, trainer._step_samples
        trainer._step_loss, trainer._step_samples = 0.0, 0
        if trainer.swarm.step(samples, loss):
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._trainer.swarm.over:
            print("murmurate: the Trainer ended before the run: give more max_steps", file=sys.stderr)


class _Both:
    """The states of optimizer and schedule as one."""

    def __init__(self, optimizer: Any, schedule: Any) -> None:
        self._parts = {"optimizer": optimizer, "schedule": schedule}

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts.items()}

    def load_state_dict(self, states: Any) -> None:
        for name, part in self._parts.items():
            part.load_state_dict(states[name])
