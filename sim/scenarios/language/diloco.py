"""DiLoCo in PyTorch, written from its paper and without Murmurate, to compare its losses with those of
`murmurate sim language`: the same text, the same model, the same number of tokens and schedule. Initial values
and the order of the windows are other random numbers.

    python3 sim/scenarios/language/diloco.py --data book.txt --peers 4 --outer 0.7 0.9
"""
import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, context, width = x.shape
        y = self.norm_1(x)
        split = lambda z: z.view(batch, context, self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q(y)), split(self.k(y)), split(self.v(y))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads) + mask
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, context, width)
        x = x + self.o(y)
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, width, heads, context):
        super().__init__()
        hidden = (width * 8 // 3 + 7) // 8 * 8
        self.embed = nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = Norm(width), nn.Linear(width, 256, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("o.weight", "down.weight"))
                nn.init.normal_(p, 0.0, 0.02 / (math.sqrt(2 * layers) if last else 1.0))
        half = torch.arange(0, width // heads, 2) / (width // heads)
        angles = torch.arange(context)[:, None] * 10000.0 ** -half[None, :]
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.register_buffer("mask", torch.full((context, context), -1e9).triu(1), persistent=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        return self.head(self.norm(x))


def loss_of(model, windows):
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def windows_of(text, context):
    """Windows side by side: each shares its last token with the next one."""
    count = (len(text) - 1) // context
    return torch.stack([text[i * context : i * context + context + 1] for i in range(count)])


def factor(args, time_in_rounds, rounds):
    warmup = args.warmup / args.inner
    if time_in_rounds < warmup:
        return time_in_rounds / warmup
    if not args.cosine:
        return 1.0
    part = (time_in_rounds - warmup) / (rounds - warmup)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * part))


def run(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    data = torch.frombuffer(bytearray(open(args.data, "rb").read()), dtype=torch.uint8).long()
    cut = len(data) - math.ceil(len(data) * args.held_out)
    held = windows_of(data[cut:], args.context)[:512]
    if args.split == "iid":
        all_windows = windows_of(data[:cut], args.context)
        all_windows = all_windows[torch.randperm(len(all_windows))]
        shards = [all_windows[i :: args.peers] for i in range(args.peers)]
    else:
        ends = [cut * i // args.peers for i in range(args.peers + 1)]
        shards = [windows_of(data[a:b], args.context) for a, b in zip(ends, ends[1:])]
        shards = [shard[torch.randperm(len(shard))] for shard in shards]
    anchor = Llama(args.layers, args.width, args.heads, args.context)
    workers = [Llama(args.layers, args.width, args.heads, args.context) for _ in shards]
    inner = [torch.optim.AdamW(w.parameters(), lr=args.lr, weight_decay=0.01) for w in workers]
    rate, momentum = args.outer
    outer = torch.optim.SGD(anchor.parameters(), lr=rate, momentum=momentum, nesterov=momentum > 0)
    rounds, at = args.steps // args.inner, 0
    began = time.time()
    for round_number in range(rounds):
        delta = [torch.zeros_like(p) for p in anchor.parameters()]
        for worker, optimizer, shard in zip(workers, inner, shards):
            worker.load_state_dict(anchor.state_dict())
            for step in range(args.inner):
                for group in optimizer.param_groups:
                    group["lr"] = args.lr * factor(args, round_number + step / args.inner, rounds)
                place = (at + step) * args.batch % (len(shard) - args.batch)
                optimizer.zero_grad()
                loss_of(worker, shard[place : place + args.batch]).backward()
                optimizer.step()
            for d, a, p in zip(delta, anchor.parameters(), worker.parameters()):
                d += (a.data - p.data) / len(workers)
        at += args.inner
        for p, d in zip(anchor.parameters(), delta):
            p.grad = d
        outer.step()
    with torch.no_grad():
        found = torch.stack([loss_of(anchor, part) * len(part) for part in held.split(16)]).sum() / len(held)
    name = f"outer lr {rate} momentum {momentum} H {args.inner} {args.split} {args.peers} peers seed {args.seed}"
    count = sum(p.numel() for p in anchor.parameters())
    print(f"{name}: {found.item():.4f} ({count} parameters, {time.time() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--split", choices=["iid", "source"], default="iid")
    parser.add_argument("--steps", type=int, default=768, help="inner steps of each peer")
    parser.add_argument("--inner", type=int, default=32, help="inner steps of a round")
    parser.add_argument("--outer", type=float, nargs=2, default=[0.7, 0.9], metavar=("LR", "MOMENTUM"))
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=32, help="inner steps")
    parser.add_argument("--cosine", action="store_true")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--held-out", type=float, default=0.004)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    run(parser.parse_args())
