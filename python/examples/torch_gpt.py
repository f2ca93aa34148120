"""A byte-level GPT of 0.84 M parameters in PyTorch on a text file, one part of it for each daemon.

    pip install torch
    murmurate local --nodes 4 --rounds 100 -- python python/examples/torch_gpt.py TEXT
"""

import os
import sys

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import murmurate.torch as mm  # noqa: E402

WIDTH, LAYERS, HEADS, LENGTH, BATCH = 128, 4, 4, 64, 16
with open(sys.argv[1], "rb") as file:
    text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
TRAIN = len(text) * 95 // 100
held = text[TRAIN:][: 32 * LENGTH + 1]
torch.manual_seed(mm.seed())
device = "cuda" if torch.cuda.is_available() else "cpu"


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:  # the layers are copies of one, so draw each anew
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        hidden = self.bytes(x) + self.places.weight
        return self.blocks(hidden, mask=self.mask, is_causal=True) @ self.bytes.weight.T


def score(x, y):
    scores, y = model(x.to(device)).flatten(0, 1), y.to(device).flatten()
    return nn.functional.cross_entropy(scores, y), (scores.argmax(1) == y).float().mean()


model = Gpt().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
swarm = mm.attach(model, optimizer, lambda _: (*score(held[:-1].view(-1, LENGTH), held[1:].view(-1, LENGTH)), 32))
order = np.random.default_rng([swarm.seed, swarm.shard[0], swarm.steps])
while not swarm.over:
    index, of = swarm.shard  # changes when daemons come and go
    first, last = TRAIN * index // of, TRAIN * (index + 1) // of - LENGTH
    rows = torch.stack([text[at : at + LENGTH + 1] for at in order.integers(first, last, size=BATCH)])
    loss, _ = score(rows[:, :-1], rows[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swarm.step(samples=BATCH, loss=loss)
