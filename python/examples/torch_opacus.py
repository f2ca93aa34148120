"""Two sites that promise privacy to each of their images, with Opacus: a small convolutional network in PyTorch on MNIST.

    pip install torch opacus
    murmurate local --nodes 2 --rounds 30 --preset fedavg --baseline 0 -- python python/examples/torch_opacus.py

Opacus clips the gradient of each example and adds noise in every inner step, so what leaves this process has it already.
Nothing else may leave that comes from the images: the run hears the loss on public digits, and the same number of samples
for every step. The daemon shows epsilon with its evaluations, and the loop prints it at its end.
"""

import math
import os
import sys
from pathlib import Path

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.torch as mm  # noqa: E402

BATCH, NOISE, CLIP, DELTA = 64, 1.0, 1.0, 1e-5
torch.manual_seed(mm.seed())
torch.set_num_threads(1)
model = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2),
    nn.ReLU(),
    nn.Conv2d(8, 16, 5, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
)
# All daemons know the run's seed: noise that was drawn from it would protect nothing.
torch.seed()
loss_of = nn.CrossEntropyLoss()
index, of = mm.shard()
(images, labels), held = ([torch.from_numpy(a) for a in pair] for pair in mnist.load())
mine = TensorDataset(images.reshape(-1, 1, 28, 28)[index::of], labels.long()[index::of])
unseen, answers = held[0].reshape(-1, 1, 28, 28), held[1].long()

privacy = PrivacyEngine()
private, optimizer, batches = privacy.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.25),
    data_loader=DataLoader(mine, batch_size=BATCH),
    noise_multiplier=NOISE,
    max_grad_norm=CLIP,
)
# Steps are counted on the disk before they are taken, so that no restart forgets one.
count = Path(os.environ.get("MURMURATE_SOCKET", "murmurate-state/attach/socket")).with_name("opacus-steps")
taken = int(count.read_text()) if count.exists() else 0
if taken:
    privacy.accountant.history = [(NOISE, 1 / len(batches), taken)]
public_loss = math.log(10)


def evaluate(model):
    global public_loss
    scores = model(unseen)
    # Of other digits at each site: equal losses would count as a sign of equal data.
    public_loss = float(loss_of(scores[index::of], answers[index::of]))
    right = (scores.argmax(1) == answers).float().mean()
    return {"loss": loss_of(scores, answers), "accuracy": right, "samples": len(answers), "epsilon": epsilon()}


def epsilon():
    return privacy.get_epsilon(DELTA) if privacy.accountant.history else 0.0


swarm = mm.attach(model, optimizer, evaluate)
while not swarm.over:
    for x, y in batches:  # each image is in it with the same chance, so batches differ in size
        optimizer.zero_grad()
        loss_of(private(x), y).backward()
        taken += 1
        count.with_suffix(".new").write_text(str(taken))
        count.with_suffix(".new").replace(count)
        optimizer.step()
        if swarm.step(samples=BATCH, loss=public_loss):
            break
print(f"site {index}: epsilon {epsilon():.2f} at delta {DELTA} after {taken} steps on {len(mine)} images")
