"""One of two ranks of `test_ranks.py`:  rank.py ddp|fsdp|hsdp|alone FOLDER MODE

Trains a small network on rows that depend on the number of steps only. It ends with the run.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import murmurate.torch as mm  # noqa: E402

kind, folder, mode = sys.argv[1:]
torch.set_num_threads(1)
rank, ranks = 0, 1
if kind != "alone":
    rank, ranks = int(os.environ["RANK"]), 2
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)


class Counting(nn.Module):
    """Its buffer is how many passes of training there were, and all that comes after depends on it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("passes", torch.ones(1))

    def forward(self, x):
        if self.training:
            self.passes += 1
        return torch.tanh(x) * (1 + self.passes / 10)


torch.manual_seed(3)
# Five rows are divided into three and two; one row leaves nothing for the second rank.
model = nn.Sequential(nn.Linear(3, 5), Counting(), nn.Linear(5, 1))
if kind == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
if kind in ("fsdp", "hsdp"):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # With `hsdp` both ranks hold everything, as replicas of a group of one.
    shape, names = ((2, 1), ("replicas", "rows")) if kind == "hsdp" else ((2,), ("rows",))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)


def evaluate(model):
    x, y = rows(1000)
    loss = (model(x) - y).square().mean()
    # A number that one of two ranks lacks is left out, and so is one that is not finite at one of them.
    own = {"own": 1.0} if rank == 1 else {}
    apart = {"apart": float("nan") if rank == 1 else 1.0} if ranks > 1 else {}
    return {"loss": loss, "samples": len(x), "twice": 2 * loss, **own, **apart}


def rows(step):
    """This rank's half of eight rows."""
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(8, 3, generator=generator)
    return x[rank::ranks], x.sum(1, keepdim=True)[rank::ranks]


deltas = mode == "deltas"
swarm = mm.attach(
    model,
    optimizer if deltas else None,
    evaluate,
    buffers="mean" if deltas else "local",
    socket=os.path.join(folder, "socket"),
)
step = 0
while not swarm.over:
    x, y = rows(step)
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    if deltas:
        optimizer.step()
    swarm.step(samples=len(x), loss=loss)
    step += 1
if ranks > 1:
    dist.destroy_process_group()
