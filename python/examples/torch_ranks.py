"""A perceptron on MNIST, trained by two ranks in each daemon: with DistributedDataParallel or FSDP2.

    pip install torch
    torchrun="torchrun --standalone --nproc-per-node 2"
    murmurate local --nodes 2 --rounds 40 -- $torchrun python/examples/torch_ranks.py fsdp
"""

import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))  # where the package is not installed
import mnist  # noqa: E402
import murmurate.torch as mm  # noqa: E402

BATCH, CUDA = 32, torch.cuda.is_available()
dist.init_process_group("nccl" if CUDA else "gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
if CUDA:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
device = "cuda" if CUDA else "cpu"
train, held = ([torch.from_numpy(a) for a in pair] for pair in mnist.load())
torch.manual_seed(mm.seed())
model: nn.Module = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
if sys.argv[1:] == ["fsdp"]:
    for layer in model.children():
        fully_shard(layer)
    fully_shard(model)
else:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)  # after the model was divided
loss_of = nn.CrossEntropyLoss()


def evaluate(model):
    x, y = (part[rank::ranks].to(device) for part in held)  # this rank's part
    scores = model(x)
    return loss_of(scores, y.long()), (scores.argmax(1) == y).float().mean(), len(y)


swarm = mm.attach(model, optimizer, evaluate)
order = np.random.default_rng([swarm.seed, swarm.shard[0], rank, swarm.steps])
while not swarm.over:
    index, of = swarm.shard  # the daemon's part, which its ranks divide further
    index, of = index * ranks + rank, of * ranks
    batch = torch.from_numpy(index + of * order.integers(len(train[1]) // of, size=BATCH))
    loss = loss_of(model(train[0][batch].to(device)), train[1][batch].long().to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swarm.step(samples=BATCH, loss=loss)
dist.destroy_process_group()
