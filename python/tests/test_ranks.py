"""Two ranks with gloo are one loop: what they do with the daemon's orders is what one process does that
sees the rows of both.  Skipped, with a line, where PyTorch is not installed, or has no gloo."""

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.dirname(__file__))
from daemon import Daemon  # noqa: E402

try:
    import torch.distributed as dist

    found = sys.platform == "linux" and dist.is_available() and dist.is_gloo_available()
except ImportError:
    found = False
if found:
    from murmurate import _ranks
else:
    print("skipped: the tests of several ranks, because PyTorch with gloo is not installed")

SCRIPT = os.path.join(os.path.dirname(__file__), "rank.py")


# What rank 0 says of the numbers of `rank.py` that one rank lacks, once for all evaluations.
LEFT_OUT = "\n".join(
    f"murmurate: evaluate() returns no finite '{name}' at rank {rank}: its mean is left out"
    for name, rank in [("apart", 1), ("own", 0)]
)


class Loop:
    """The processes of one loop, attached to a daemon of the test."""

    def __init__(self, kind, mode="deltas"):
        self.folder = tempfile.TemporaryDirectory()
        self.daemon = Daemon(self.folder.name, mode)
        ranks = 1 if kind == "alone" else 2
        command = [sys.executable, "-W", "ignore", SCRIPT, kind, self.folder.name, mode]
        self.processes = [
            subprocess.Popen(
                command, env={**os.environ, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True
            )
            for rank in range(ranks)
        ]

    def __enter__(self):
        self.ready = self.daemon.attach()
        return self.daemon

    def __exit__(self, *_):
        self.daemon.close()
        for process in self.processes:
            process.kill()
            process.communicate()
        self.folder.cleanup()

    def ends(self):
        """The exit statuses and the last lines of all processes."""
        said = [process.communicate(timeout=120)[1] for process in self.processes]
        return [(process.returncode, text.strip()) for process, text in zip(self.processes, said)]


def session(kind):
    """What a loop answers to a fixed list of orders, and its parameters at each cut."""
    loop, cuts, answers = Loop(kind), [], []
    with loop as daemon:
        answers.append(loop.ready)
        cuts.append(daemon.slots[0].copy())
        answers += daemon.steps(3)
        first = daemon.ask("cut", slot=1, state=0)["state"]
        cuts.append(daemon.slots[1].copy())
        # An evaluation leaves gathered parameters, which must not hide what comes next.
        answers.append(daemon.ask("evaluate"))
        # From within the first weight to within the last one.
        daemon.slots[1][4:22] = 0.25
        answers.append(daemon.install(1, 4, 22))
        answers.append(daemon.ask("evaluate"))
        answers += daemon.steps(2)
        assert daemon.ask("save", file=1)["bytes"] == first
        daemon.ask("cut", slot=0, state=None)
        cuts.append(daemon.slots[0].copy())
        # Back to the first cut, with its state.
        daemon.slots[0][:] = cuts[1]
        daemon.install(0, 0, len(cuts[1]))
        answers.append(daemon.ask("load", file=0, bytes=first))
        answers += daemon.steps(2)
        daemon.ask("cut", slot=1, state=None)
        cuts.append(daemon.slots[1].copy())
        daemon.tell("stop")
        ends = loop.ends()
    return daemon.hello, answers, cuts, ends


@unittest.skipUnless(found, "PyTorch with gloo is not installed")
class Ranks(unittest.TestCase):
    def test_two_ranks_do_what_one_process_does(self):
        hello, answers, cuts, ends = session("alone")
        self.assertEqual(ends, [(0, "")])
        self.assertEqual(sum("named" in answer for answer in answers), 2)
        for kind in ("ddp", "fsdp", "hsdp"):
            with self.subTest(kind=kind):
                found = session(kind)
                self.assertEqual(found[0]["tensors"], hello["tensors"])
                self.assertEqual(found[3], [(0, LEFT_OUT), (0, "")])
                self.assertEqual(len(found[1]), len(answers))
                for one, two in zip(found[1], answers):
                    self.assertEqual((one["t"], one.get("samples")), (two["t"], two.get("samples")))
                    if "loss" in two:
                        self.assertAlmostEqual(one["loss"], two["loss"], places=5)
                    if "named" in two:
                        self.assertEqual(list(one["named"]), ["twice"])
                        self.assertAlmostEqual(one["named"]["twice"], 2 * two["loss"], places=5)
                for one, two in zip(found[2], cuts):
                    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)

    def test_gradients_are_those_of_all_ranks(self):
        slots = {}
        for kind in ("alone", "ddp", "fsdp"):
            loop = Loop(kind, "gradients")
            with loop as daemon:
                step = daemon.ask("go")
                slots[kind] = daemon.slots[1].copy()
                self.assertEqual((step["t"], step["samples"]), ("step", 8))
                daemon.tell("stop")
                self.assertEqual({status for status, _ in loop.ends()}, {0})
            self.assertGreater(np.abs(slots[kind]).min(), 0)
            np.testing.assert_allclose(slots[kind], slots["alone"], rtol=1e-4, atol=1e-6)

    def test_a_refusal_ends_all_ranks(self):
        loop = Loop("fsdp")
        with loop as daemon:
            daemon.ask("go")
            daemon.tell("refuse", reason="by the test")
            for status, said in loop.ends():
                self.assertEqual(status, 1)
                self.assertTrue(said.endswith("Refused: by the test"), said)

    def test_a_rank_that_is_killed_ends_the_other(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                loop = Loop("ddp")
                with loop as daemon:
                    daemon.ask("go")
                    loop.processes[victim].kill()
                    if victim == 1:
                        daemon.tell("go")
                    status, said = loop.ends()[1 - victim]
                    # Rank 0 says in a line that the other one ended.
                    self.assertEqual((status, len(said.splitlines())), (1, victim), said)

    def test_states_go_back_to_the_ranks_that_wrote_them(self):
        class Team:
            size, sharded = 2, True

            def __init__(self, rank):
                self.rank = rank

            def gather(self, _):
                return [3, 2]

        wires = [_ranks.TeamWire(Team(rank)) for rank in range(2)]
        with tempfile.TemporaryFile() as file:
            for wire, part in zip(wires, (b"abc", b"de")):
                at, total = wire.place(file.fileno(), len(part))
                os.pwrite(file.fileno(), part, at)
            data = os.pread(file.fileno(), 100, 0)
        self.assertEqual(len(data), total)
        self.assertEqual([wire.part_of(data) for wire in wires], [b"abc", b"de"])
        for wire in wires:
            self.assertIsNone(wire.part_of(b"MMSTATE1 of one process"))
            wire.team.size = 3
            self.assertIsNone(wire.part_of(data))
            wire.team.sharded = False
            self.assertIsNone(wire.part_of(data))
            self.assertEqual(wire.part_of(b"MMSTATE1 of one process"), b"MMSTATE1 of one process")


if __name__ == "__main__":
    unittest.main()
