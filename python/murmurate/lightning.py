"""The Trainer of Lightning.

    import lightning as L
    import murmurate.lightning as ml

    L.seed_everything(ml.seed())                       # the same first values on every daemon
    trainer = L.Trainer(max_steps=-1, callbacks=[ml.SwarmCallback(evaluate)])
    trainer.fit(module, loader)

`SwarmCallback` attaches when training starts, tells the daemon the mean loss and the samples of every
optimizer step, with those of all its accumulated batches, and stops the Trainer when training is over. A
checkpoint keeps the states of the optimizers, the learning rates' schedules and the precision plugin. Both
packages work, `lightning` and the older `pytorch_lightning`.

- Give no limit that the Trainer reaches before the run ends, and no `min_epochs` or `min_steps`, which
  make it go on after that.
- Divide the data by `ml.shard()` when the script starts; it raises where the daemon has no `shards.index` and
  `shards.of`. The order of the data begins again after a restart.
- The preset must exchange deltas: Lightning steps by itself. A run that exchanges gradients is refused.
- With several devices every rank reports, see `murmurate.torch`; `evaluate` is called on all of them.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Callable

from . import torch as _torch
from ._errors import MurmurateError
from ._swarm import PATIENCE, Swarm, seed, shard
from ._types import Buffers, Evaluate, Place

__all__ = ["SwarmCallback", "seed", "shard"]

_PACKAGES = ["lightning.pytorch", "pytorch_lightning"]


def _packages() -> list[Any]:
    """The packages of Lightning that are imported, else the first that is installed."""
    imported = [name for name in _PACKAGES if name in sys.modules]
    if imported:
        return [sys.modules[name] for name in imported]
    for name in _PACKAGES:
        try:
            return [importlib.import_module(name)]
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError("murmurate.lightning needs Lightning: pip install lightning")


_LIGHTNING = _packages()

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:

    class Callback(*[package.Callback for package in _LIGHTNING]):
        """One of each package that is in use."""


class SwarmCallback(Callback):
    """Attaches a Trainer to the daemon while it trains.

    evaluate: a function of the LightningModule that returns the mean loss, the accuracy or None, and the
        number of held-out samples. It is called in evaluation mode, without gradients.
    samples: a function of a batch that returns its number of samples [default: the first dimension of
        its first tensor].
    buffers: as that of `murmurate.torch.attach`.
    socket, patience: as those of `murmurate.attach`.
    """

    def __init__(
        self,
        evaluate: Evaluate | None = None,
        *,
        samples: Callable[[Any], int] | None = None,
        buffers: Buffers = "local",
        socket: Place | None = None,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__()
        self.swarm: Swarm | None = None  # from the start of training on
        self._evaluate, self._buffers, self._socket, self._patience = evaluate, buffers, socket, patience
        self._samples = samples or _batch_size
        self._clear()

    def _clear(self) -> None:
        self._loss_sum, self._sample_count = 0.0, 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._clear()
        self._steps_seen = trainer.global_step
        parts = _Parts(trainer)
        chosen = self._evaluate
        evaluate = chosen and (lambda _: chosen(pl_module))
        # The strategy's module is the wrapped one, such as that of DistributedDataParallel.
        model = trainer.strategy.model or pl_module
        self.swarm = _torch.attach(
            model, parts, evaluate, buffers=self._buffers, socket=self._socket, patience=self._patience
        )

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:
            samples = self._samples(batch)
            if pl_module.automatic_optimization:
                # Lightning has divided it by the number of batches of a whole step.
                loss = loss * trainer.accumulate_grad_batches
            self._loss_sum += loss.detach() * samples
            self._sample_count += samples
        if trainer.global_step == self._steps_seen:
            return
        self._steps_seen = trainer.global_step
        if not self._sample_count:
            raise MurmurateError("training_step() must return the loss, or a dict with `loss`")
        samples, mean = self._sample_count, self._loss_sum / self._sample_count
        self._clear()
        assert self.swarm is not None, "training has started"
        if self.swarm.step(samples, mean):
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.swarm is not None and not self.swarm.over:
            text = "murmurate: the Trainer ended before the run: give more max_epochs or max_steps"
            print(text, file=sys.stderr)


class _Parts:
    """What a checkpoint keeps beside the parameters, as one: optimizers, schedules, the loss scale."""

    def __init__(self, trainer: Any) -> None:
        schedules = [config.scheduler for config in trainer.lr_scheduler_configs]
        self._parts = [*trainer.optimizers, *schedules, trainer.precision_plugin]

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, states: Any) -> None:
        if len(states["parts"]) != len(self._parts):
            raise MurmurateError("the checkpoint is of other optimizers or learning rate schedules")
        for part, state in zip(self._parts, states["parts"]):
            part.load_state_dict(state)


def _batch_size(batch: Any) -> int:
    name = f"{_LIGHTNING[0].__name__}.utilities.data"
    return importlib.import_module(name).extract_batch_size(batch)
