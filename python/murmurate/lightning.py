"""A callback for PyTorch Lightning.

    from murmurate.lightning import MurmurateCallback

    Trainer(max_steps=-1, callbacks=[MurmurateCallback()]).fit(module, loader)
"""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from . import torch as mm
from ._errors import MurmurateError


class MurmurateCallback(Callback):
    """Calls `swarm.step` after every optimizer step and ends training with the swarm.

    samples: a function of a batch that returns its number of samples [default: the length of its first
        tensor].
    """

    def __init__(self, evaluate=None, samples=None, socket=None):
        self._evaluate, self._socket = evaluate, socket
        self._count = samples or _samples
        self._swarm, self._steps, self._seen = None, 0, 0

    def on_train_start(self, trainer, module):
        if len(trainer.optimizers) != 1:
            raise MurmurateError("the callback handles modules with one optimizer")
        optimizer = trainer.optimizers[0]
        self._swarm = mm.attach(module, optimizer, self._evaluate, socket=self._socket)
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self._seen += self._count(batch)
        # Batches whose gradients are only accumulated take no inner step.
        if trainer.global_step == self._steps:
            return
        self._steps = trainer.global_step
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        seen, self._seen = self._seen, 0
        if self._swarm.step(samples=seen, loss=loss):
            trainer.should_stop = True


def _samples(batch):
    while isinstance(batch, (list, tuple, dict)):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return len(batch)
