"""Logistic regression in NumPy on made-up data of ten classes, one shard for each daemon.

    murmurate local --nodes 4 --rounds 20 -- python python/examples/numpy_logistic.py
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import murmurate  # noqa: E402

FEATURES, CLASSES, BATCH = 64, 10, 32
RATE, MOMENTUM = 0.1, 0.9

# The same data on every daemon; each trains on its own part of it.
rng = np.random.default_rng(murmurate.seed())
centers = rng.normal(size=(CLASSES, FEATURES)).astype(np.float32)
labels = rng.integers(CLASSES, size=12_000)
points = (0.5 * centers[labels] + rng.normal(size=(12_000, FEATURES))).astype(np.float32)
TRAIN = 10_000
held_x, held_y = points[TRAIN:], labels[TRAIN:]

params = {
    "w": np.zeros((FEATURES, CLASSES), np.float32),
    "b": np.zeros(CLASSES, np.float32),
}
momentum = {name: np.zeros_like(array) for name, array in params.items()}


def loss_and_gradients(x, y):
    scores = x @ params["w"] + params["b"]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(y)), y] + 1e-9).mean()
    right = (shares.argmax(axis=1) == y).mean()
    shares[np.arange(len(y)), y] -= 1
    return loss, right, {"w": x.T @ shares / len(y), "b": shares.mean(axis=0)}


def evaluate(_):
    loss, right, _ = loss_and_gradients(held_x, held_y)
    return loss, right, len(held_y)


swarm = murmurate.attach(params, optimizer=momentum, evaluate=evaluate)
order = np.random.default_rng([swarm.seed, swarm.shard[0], swarm.steps])
while not swarm.over:
    index, of = swarm.shard  # changes when daemons come and go
    batch = index + of * order.integers(TRAIN // of, size=BATCH)
    loss, _, gradients = loss_and_gradients(points[batch], labels[batch])
    if swarm.mode == "deltas":
        for name in params:
            momentum[name][...] = MOMENTUM * momentum[name] + gradients[name]
            params[name] -= RATE * momentum[name]
    swarm.step(samples=BATCH, loss=loss, gradients=gradients)
