"""A small convolutional network in PyTorch on MNIST, one shard of the images for each daemon.

    pip install torch
    murmurate local --nodes 4 --rounds 40 -- python python/examples/torch_mnist.py
"""

import os
import sys

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.torch as mm  # noqa: E402

BATCH = 64
train, held = ([torch.from_numpy(a) for a in pair] for pair in mnist.load())
torch.manual_seed(mm.seed())
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(
    nn.Unflatten(1, (1, 28, 28)),
    nn.Conv2d(1, 8, 5, stride=2),
    nn.ReLU(),
    nn.Conv2d(8, 16, 5, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
loss_of = nn.CrossEntropyLoss()


def evaluate(model):
    scores, labels = model(held[0].to(device)), held[1].long().to(device)
    return loss_of(scores, labels), (scores.argmax(1) == labels).float().mean(), len(labels)


deltas = mm.mode() == "deltas"  # else the run steps by itself, and asks for gradients
swarm = mm.attach(model, optimizer if deltas else None, evaluate)
order = np.random.default_rng([swarm.seed, swarm.shard[0], swarm.steps])
while not swarm.over:
    index, of = swarm.shard  # changes when daemons come and go
    batch = torch.from_numpy(index + of * order.integers(len(train[1]) // of, size=BATCH))
    loss = loss_of(model(train[0][batch].to(device)), train[1][batch].long().to(device))
    optimizer.zero_grad()
    loss.backward()
    if deltas:
        optimizer.step()
    swarm.step(samples=BATCH, loss=loss)
