"""The digits of the repository: 10,000 to train on, 2,000 held out, without a download."""

import gzip
import os

import numpy as np

HOME = os.path.join(os.path.dirname(__file__), "..", "..", "tasks", "data", "mnist-subset")


def _read(name, header):
    with gzip.open(os.path.join(HOME, name)) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def load():
    """Images as float32 in [0, 1] of shape [count, 784], and labels: those to train on, then the held ones."""
    sets = []
    for part in ("train", "t10k"):
        images = _read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        labels = _read(f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int32)
        sets.append((images.astype(np.float32) / 255, labels))
    return sets
