"""Sites with cameras of different contrast, and 250 images each: a network with batch norms in PyTorch on MNIST.

    pip install torch
    murmurate local --nodes 4 --rounds 30 --baseline 0 --config sites.toml -- python python/examples/torch_sites.py

`sites.toml` has `[strategy]`, `preset = "fedavg"` and `synchronization.inner_steps = 10`. `local = ["*bn*"]` in `[strategy.architecture]` keeps the batch norms of each site (FedBN); with the argument `mean`
their running means and variances are averaged, as everything else is.
"""

import os
import sys

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.torch as mm  # noqa: E402

BATCH, IMAGES = 50, 250
torch.manual_seed(mm.seed())
torch.set_num_threads(1)
names = ["conv1", "bn1", "relu1", "conv2", "bn2", "relu2", "flat", "out"]
layers = [nn.Conv2d(1, 8, 5, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2)]
layers += [nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)]
model = nn.Sequential()
for name, layer in zip(names, layers):
    model.add_module(name, layer)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_of = nn.CrossEntropyLoss()
index, _ = mm.shard()


def seen(images):
    """As the camera of this site shows them: bright or dark, as they are or inverted."""
    images = torch.from_numpy(images).reshape(-1, 1, 28, 28)
    images = 1 - images if index % 2 else images
    return 0.25 * images + 0.6 if index % 4 > 1 else images


train, held = mnist.load()
mine = slice(index * IMAGES, (index + 1) * IMAGES)
images, labels = seen(train[0][mine]), torch.from_numpy(train[1][mine]).long()
unseen, answers = seen(held[0]), torch.from_numpy(held[1]).long()


def evaluate(model):
    scores = model(unseen)
    return loss_of(scores, answers), (scores.argmax(1) == answers).float().mean(), len(answers)


swarm = mm.attach(model, optimizer, evaluate, buffers="mean" if "mean" in sys.argv else "local")
order = np.random.default_rng([swarm.seed, index, swarm.steps])
while not swarm.over:
    batch = torch.from_numpy(order.integers(IMAGES, size=BATCH))
    loss = loss_of(model(images[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swarm.step(samples=BATCH, loss=loss)
