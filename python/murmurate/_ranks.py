"""Several ranks of torch.distributed on one machine that are one training loop.

Rank 0 has the connection to the daemon. It passes every message of the daemon on to all ranks, each of
which performs it on the parameters that it holds, and their answers become one. All ranks map the memory
file of the daemon, so no parameters travel between them for the daemon's sake.
"""

import ctypes
import datetime
import json
import os
import signal
import socket
import struct
import sys

import torch
import torch.distributed as dist

from ._errors import MurmurateError
from ._wire import GO, RANKS, Gone, Wire

# A rank waits for the others as long as rank 0 waits for its daemon; a rank that ended is seen at once.
WAIT = datetime.timedelta(days=365)

PR_SET_PDEATHSIG = 1


def team(sharded):
    """The ranks of this loop, or None where it is one process.

    sharded: whether a rank holds only a part of a parameter, so that each has a state of its own.
    """
    if not dist.is_available() or not dist.is_initialized():
        # The ranks of an island that the daemon sums have no process group.
        alone = "MURMURATE_RANKS" in os.environ
        if int(os.environ.get("WORLD_SIZE") or 1) > 1 and not alone:
            raise MurmurateError(
                "this process is one of several ranks: call torch.distributed.init_process_group() before "
                "attach()"
            )
        return None
    return Team(sharded) if dist.get_world_size() > 1 else None


class Team:
    """All ranks of the default process group."""

    def __init__(self, sharded):
        self.rank, self.size, self.sharded = dist.get_rank(), dist.get_world_size(), sharded
        # A group of its own on the CPU: a wait in one of NCCL would keep the devices busy and time out.
        self._group = dist.new_group(backend="gloo", timeout=WAIT)
        self._length = torch.zeros(1, dtype=torch.int64)
        if os.environ.get("MURMURATE_SUPERVISED") == "1" and "TORCHELASTIC_RUN_ID" in os.environ:
            _end_with_torchrun()

    def connect(self, path, patience):
        """The connection of this rank, as `Wire`."""
        return LeaderWire(self, path, patience) if self.rank == 0 else FollowerWire(self)

    def tell(self, text=b""):
        """The text that rank 0 gives. An empty one is the most frequent: one message and not two."""
        self._length[0] = len(text)
        self._together(dist.broadcast, self._length, 0)
        length = int(self._length)
        if length == 0:
            return b""
        data = torch.frombuffer(bytearray(text or length), dtype=torch.uint8)
        self._together(dist.broadcast, data, 0)
        return data.numpy().tobytes()

    def gather(self, thing):
        """What each rank gives, in their order."""
        things = [None] * self.size
        self._together(dist.all_gather_object, things, thing)
        return things

    def mean(self, samples, loss):
        """The samples of all ranks, and their mean loss."""
        sums = torch.tensor([samples, samples * loss], dtype=torch.float64)
        self._together(dist.all_reduce, sums)
        return int(sums[0]), float(sums[1] / sums[0])

    def _together(self, what, *args):
        try:
            what(*args, group=self._group)
        except RuntimeError as error:
            # Its own last words say more.
            if self.rank == 0:
                print(f"murmurate: another rank ended ({str(error).splitlines()[0][:200]})", file=sys.stderr)
            sys.exit(1)


class TeamWire:
    """What the connections of all ranks have in common. An answer is sent when all ranks have it."""

    def __init__(self, team):
        self.team = team
        self.leads = team.rank == 0
        self._told = set()

    def _answer(self, message):
        raise NotImplementedError

    def send(self, message):
        if message["t"] == "error":
            # The others may wait for this rank elsewhere: its end ends them.
            self._answer(message)
            return
        answers = self.team.gather(message)
        if self.leads and message["t"] == "score":
            self._tell_left_out(answers)
        self._answer(_one(answers))

    def _tell_left_out(self, scores):
        """Names once each further number that has no mean, because a rank has none that is finite."""
        for name, rank in _left_out(scores):
            if name not in self._told:
                self._told.add(name)
                text = f"evaluate() returns no finite {name!r} at rank {rank}: its mean is left out"
                print(f"murmurate: {text}", file=sys.stderr)

    def total(self, size):
        return sum(self.team.gather(size))

    def keeps_state(self):
        return self.leads or self.team.sharded

    def place(self, fd, size):
        """As `Wire.place`. Parts of several ranks: `RANKS`, their number, the bytes of each, the parts."""
        if self.leads:
            os.ftruncate(fd, 0)
        sizes = self.team.gather(size)
        if not self.team.sharded:
            return 0, sizes[0]
        header = RANKS + struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes)
        if self.leads:
            os.pwrite(fd, header, 0)
        return len(header) + sum(sizes[: self.team.rank]), len(header) + sum(sizes)

    def part_of(self, data):
        if not self.team.sharded:
            return None if data[:8] == RANKS else data
        if data[:8] != RANKS or struct.unpack_from("<Q", data, 8)[0] != self.team.size:
            return None
        sizes = struct.unpack_from(f"<{self.team.size}Q", data, 16)
        start = 16 + 8 * self.team.size + sum(sizes[: self.team.rank])
        return data[start : start + sizes[self.team.rank]]


class LeaderWire(TeamWire):
    """Rank 0: the connection to the daemon."""

    def __init__(self, team, path, patience):
        super().__init__(team)
        self._wire = Wire(path, patience)

    def close(self):
        self._wire.close()

    def _answer(self, message):
        self._wire.send(message)

    def step(self, samples, loss):
        self._wire.step(*self.team.mean(samples, loss))

    def receive_welcome(self):
        try:
            welcome, fds = self._wire.receive_welcome()
        except Gone:
            self.team.tell(b"gone")
            raise
        files = [(fd, os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in fds]
        self.team.tell(json.dumps({"welcome": welcome, "pid": os.getpid(), "files": files}).encode())
        if fds:
            _same_machine(self.team, None)
        return welcome, fds

    def receive(self):
        try:
            text = self._wire.receive_text()
        except Gone:
            self.team.tell(b"gone")
            raise
        self.team.tell(b"" if text == GO else text)
        return json.loads(text)


class FollowerWire(TeamWire):
    """Another rank: what rank 0 passes on."""

    def __init__(self, team):
        super().__init__(team)
        self._fds = []

    def close(self):
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def _answer(self, message):
        pass

    def step(self, samples, loss):
        self.team.mean(samples, loss)

    def receive_welcome(self):
        told = json.loads(self._passed_on())
        problem = None
        try:
            for number, *file in told["files"]:
                fd = os.open(f"/proc/{told['pid']}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
                self._fds.append(fd)
                if [os.fstat(fd).st_dev, os.fstat(fd).st_ino] != file:
                    raise FileNotFoundError("it is another file")
        except OSError as error:
            problem = f"rank {self.team.rank} on {socket.gethostname()}: {error}"
        if told["files"]:
            _same_machine(self.team, problem)
        return told["welcome"], self._fds

    def receive(self):
        text = self._passed_on()
        return json.loads(text) if text else {"t": "go"}

    def _passed_on(self):
        text = self.team.tell()
        if text == b"gone":
            raise Gone()
        return text


def _same_machine(team, problem):
    """Raises on all ranks where one of them cannot open the daemon's memory."""
    problems = [problem for problem in team.gather(problem) if problem is not None]
    if problems:
        raise MurmurateError(
            f"all ranks must be on the machine of the daemon, and on Linux ({problems[0]}): start one daemon "
            "and one torchrun on each machine"
        )


def _one(answers):
    """The answer of all ranks. Raises on all of them where they do not fit."""
    first = answers[0]
    if first["t"] == "hello":
        for rank, answer in enumerate(answers):
            if {**answer, "faulthandler": None} != {**first, "faulthandler": None}:
                raise MurmurateError(
                    f"rank {rank} attaches another model than rank 0, or not with the same arguments"
                )
    if first["t"] == "score":
        return {"t": "score", **_mean_score(answers)}
    return first


def _left_out(scores):
    """The further numbers that a rank lacks, each with the first such rank. A rank leaves out what is not finite."""
    all_named = [score.get("named", {}) for score in scores]
    names = dict.fromkeys(name for named in all_named for name in named)
    lacks = ((name, [rank for rank, named in enumerate(all_named) if name not in named]) for name in names)
    return [(name, ranks[0]) for name, ranks in lacks if ranks]


def _mean_score(scores):
    samples = sum(score["samples"] for score in scores)

    def mean(key):
        if any(score[key] is None for score in scores):
            return None
        return sum(score[key] * score["samples"] for score in scores) / max(samples, 1)

    left_out = {name for name, _ in _left_out(scores)}
    named = {}
    for name in scores[0].get("named", {}):
        if name not in left_out:
            sums = [score["named"][name] * score["samples"] for score in scores]
            named[name] = sum(sums) / max(samples, 1)
    one = {"loss": mean("loss"), "accuracy": mean("accuracy"), "samples": samples}
    return {**one, "named": named} if named else one


def _end_with_torchrun():
    """torchrun starts its ranks in sessions of their own, where the daemon's signals do not come: when the
    daemon kills torchrun, the system ends this rank."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
