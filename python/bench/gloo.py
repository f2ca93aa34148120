"""Measures gloo's all-reduce of f32 between processes on loopback:  gloo.py PEERS PARAMS ROUNDS

Prints what `murmurate bench exchange --json` calls by the same names: the median over rounds of the slowest peer's
seconds, and the mean CPU seconds of a peer in a round. As there, one more round warms up.
"""

import json
import os
import resource
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist


def cpu_s() -> float:
    """CPU time of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(rank: int, ranks: int, params: int, rounds: int) -> list:
    """Wall-clock and CPU seconds of each round."""
    torch.set_num_threads(1)  # more would still spin in the round after they filled the values
    values = torch.empty(params)
    taken = []
    for _ in range(1 + rounds):
        values.fill_(rank)
        dist.barrier()
        began, spent = time.perf_counter(), cpu_s()
        dist.all_reduce(values)
        wall = time.perf_counter() - began
        # What a peer still sends then belongs to the round too.
        dist.barrier()
        taken.append((wall, cpu_s() - spent))
        assert values[0] == values[-1] == sum(range(ranks)), "the sum is wrong"
    return taken[1:]


def report(peers: list) -> dict:
    """Combines what all peers measured."""
    slowest = [max(wall for wall, _ in one_round) for one_round in zip(*peers)]
    cpu = [cpu for peer in peers for _, cpu in peer]
    return {"round_s": statistics.median(slowest), "cpu_s_per_peer": statistics.mean(cpu)}


def peer(rank: int, store: str, ranks: int, params: int, rounds: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    everyone = [None] * ranks
    dist.all_gather_object(everyone, measure(rank, ranks, params, rounds))
    if rank == 0:
        print(json.dumps(report(everyone)))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    ranks, params, rounds = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        torch.multiprocessing.spawn(peer, (store, ranks, params, rounds), nprocs=ranks)
