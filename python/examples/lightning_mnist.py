"""A small convolutional network with Lightning on MNIST, one shard of the images for each daemon.

    pip install lightning
    murmurate local --nodes 4 --rounds 40 -- python python/examples/lightning_mnist.py
"""

import os
import sys

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.lightning as ml  # noqa: E402

train, held = ([torch.from_numpy(a) for a in pair] for pair in mnist.load())


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        convolutions = [nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 5, 2), nn.ReLU()]
        ends = [nn.Flatten(), nn.Linear(256, 10)]
        self.layers = nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *convolutions, *ends)

    def score(self, images, labels):
        scores = self.layers(images)
        loss = nn.functional.cross_entropy(scores, labels.long())
        return loss, (scores.argmax(1) == labels).float().mean()

    def training_step(self, batch):
        return self.score(*batch)[0]

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def evaluate(module):
    return *module.score(*(a.to(module.device) for a in held)), len(held[1])


L.seed_everything(ml.seed())
module = Digits()
index, of = ml.shard()
data = TensorDataset(*(a[index::of] for a in train))
trainer = L.Trainer(
    max_epochs=-1,
    callbacks=[ml.SwarmCallback(evaluate)],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(module, DataLoader(data, batch_size=64, shuffle=True))
