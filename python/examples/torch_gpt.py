"""A byte-level GPT of 0.83 M parameters in PyTorch on a text file, one part of it for each daemon.

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
text = torch.from_numpy(np.fromfile(sys.argv[1], np.uint8)).long()
TRAIN = len(text) * 95 // 100
held = text[TRAIN:][: 32 * LENGTH + 1].unfold(0, LENGTH + 1, LENGTH)
torch.manual_seed(mm.seed())
device = "cuda" if torch.cuda.is_available() else "cpu"


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:  # the layers are copies of one
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        hidden = self.bytes(x) + self.places.weight
        return self.blocks(hidden, mask=self.mask, is_causal=True) @ self.bytes.weight.T


def score(rows):
    scores, y = model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()
    return nn.functional.cross_entropy(scores, y), (scores.argmax(1) == y).float().mean()


model = Gpt().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
swarm = mm.attach(model, optimizer, lambda _: (*score(held.to(device)), len(held)))
order = np.random.default_rng([swarm.seed, swarm.shard[0], swarm.steps])
while not swarm.over:
    index, of = swarm.shard  # changes when daemons come and go
    places = order.integers(TRAIN * index // of, TRAIN * (index + 1) // of - LENGTH, size=BATCH)
    rows = torch.stack([text[at : at + LENGTH + 1] for at in places])
    loss, _ = score(rows.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swarm.step(samples=BATCH, loss=loss)
