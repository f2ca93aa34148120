"""A callback for the Trainer of Hugging Face's transformers.

    from murmurate.hf import MurmurateCallback

    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[MurmurateCallback()])
    trainer.train()

Set `max_steps` high: the swarm ends training. `transformers.set_seed(murmurate.seed())` before the model is
made lets all daemons start from the same values.
"""

from transformers import TrainerCallback

from . import torch as mm


class MurmurateCallback(TrainerCallback):
    """Calls `swarm.step` after every optimizer step and ends training with the swarm."""

    def __init__(self, evaluate=None, socket=None):
        self._evaluate, self._socket = evaluate, socket
        self._swarm, self._loss = None, None

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **others):
        optimizer = getattr(optimizer, "optimizer", optimizer)  # that of accelerate wraps it
        self._swarm = mm.attach(model, optimizer, self._evaluate, socket=self._socket)
        self._samples = args.train_batch_size * args.gradient_accumulation_steps

    def on_log(self, args, state, control, logs=None, **others):
        self._loss = (logs or {}).get("loss", self._loss)

    def on_step_end(self, args, state, control, **others):
        # The Trainer tells its loss only when it logs; until then nothing is known but that it is finite.
        if self._swarm.step(samples=self._samples, loss=self._loss if self._loss is not None else 0.0):
            control.should_training_stop = True
        return control
