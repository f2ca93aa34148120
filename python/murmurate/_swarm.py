"""A training loop attached to a daemon, whatever the framework.

The framework's part is an *adapter*: an object that knows the tensors and copies them between the
framework and flat float32 views. `_numpy.py` has the smallest one.

    tensors()            -> list of (name, shape), in an order that never changes
    mapped(memory)       the memory that views are parts of, before the first of them; if it is there
    write(view)          copies all parameters into `view`, flat float32
    install(view, start, end)  takes the parameters from `start` to `end` over from `view`
    gradients(given, view)     copies gradients into `view`; only if `hands_gradients`
    changed()            -> what is no longer as it was when the loop attached, in words; else None. Cheap
    own_gradients()      -> what `given` is where step(gradients=...) was not given; None if nothing
    evaluate()           -> loss, accuracy or None, samples, or a dict with them; only if `evaluates`
    state()              -> a tree for `_state.dump`; only if `has_state`
    load_state(tree)     takes that back

Where several processes are one loop (`_ranks.py`), each has a `Swarm`, and an adapter that copies what that
process holds.
"""

from __future__ import annotations

import faulthandler
import math
import mmap
import os
import signal
import sys
import time
import traceback
from typing import Any, Literal, Mapping, SupportsFloat, SupportsInt

import numpy as np

from . import _state
from ._errors import MurmurateError, NoDaemon, Refused
from ._types import Place
from ._wire import VERSION, Gone, Wire, read_run, socket_path

# How long a trainer that is started by hand waits for its daemon, and for it to come back, in seconds.
PATIENCE = 600.0

Mode = Literal["deltas", "gradients"]

# Whether this process has asked for its part of the data.
_asked = False

# What an evaluation is, in the order in which it may be returned.
SCORE = ("loss", "accuracy", "samples")

# Named numbers of one evaluation, and characters of a name, as the daemon takes them.
NAMED_MAX, NAME_MAX = 16, 64


def run_info(socket: Place | None = None, patience: float = 60.0) -> dict[str, Any]:
    """What the daemon says of its run: a dict with run, seed, shard, shards, dealt and mode."""
    return read_run(socket_path(socket), 0.0 if _is_supervised() else patience)


def seed(socket: Place | None = None) -> int:
    """The run's seed. Initialise the model with it, so that all daemons start from the same values."""
    return int(run_info(socket)["seed"])


def shard(socket: Place | None = None, *, whole: bool = False) -> tuple[int, int]:
    """This daemon's part of the data, before a loop attaches: its number from zero, and the number of parts.

    It raises where the daemon has no fixed part, because all daemons would train the same samples.

    whole: this daemon trains on all of its data, which other daemons do not have.
    """
    global _asked
    info = run_info(socket)
    if info["dealt"] and not whole:
        raise MurmurateError(
            "this daemon has no fixed part of the data, so all daemons would train the same samples: ask "
            "`swarm.shard` in every batch after attach(), set `shards.index` and `shards.of` in the configuration "
            "of each daemon, or call shard(whole=True) where it trains on all of its data"
        )
    _asked = True
    return int(info["shard"]), int(info["shards"])


def mode(socket: Place | None = None) -> Mode:
    """What the run exchanges, before a loop attaches: see `Swarm.mode`."""
    return run_info(socket)["mode"]


class Swarm:
    """A training loop that is attached to a daemon; `attach` makes one."""

    def __init__(
        self, adapter: Any, socket: Place | None = None, patience: float = PATIENCE, team: Any = None
    ) -> None:
        self._adapter = adapter
        self._team = team
        self._path = socket_path(socket)
        self._supervised = _is_supervised()
        # A supervised loop is started by a daemon that listens: where none does, it has ended.
        self._patience = 0.0 if self._supervised else float(patience)
        self._wire: Any = None
        self._over = False
        self._steps = 0
        self._rate = 1.0
        self._installed = False
        self._ignored: set[str] = set()
        self._handler = _print_stacks_on_sigusr1()
        os.register_at_fork(after_in_child=self._forget)
        try:
            self._connect()
        except Gone:
            raise NoDaemon(
                f"the daemon at {self._path} closed the connection while this loop attached: it ends, or "
                "belongs to another user; see what it says"
            ) from None
        self._serve()

    # What the user needs.

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self._welcome["seed"]

    @property
    def shard(self) -> tuple[int, int]:
        """This daemon's part of the data: its number from zero, and the number of parts.

        With `shards.kind = "dealt"` (the default) it changes when daemons come and go.
        """
        global _asked
        _asked = True
        of = self._welcome["shard"]
        return of["index"], of["of"]

    @property
    def mode(self) -> Mode:
        """`deltas`: this loop steps with its own optimizer. `gradients`: it passes gradients to `step`."""
        return self._welcome["mode"]

    @property
    def steps(self) -> int:
        """Inner steps of this daemon in the run up to the last round, those before a restart too."""
        return self._steps

    def lr_scale(self) -> float:
        """The factor of the run's learning-rate schedule for the inner step that comes now, 0 to 1.

        Set your learning rate to your base rate times this before every `optimizer.step()`. It is 1
        where the run has no schedule, and in mode `gradients`, where the daemons step.
        """
        return self._rate

    @property
    def over(self) -> bool:
        """Whether training is over."""
        return self._over

    def step(
        self, samples: SupportsInt, loss: SupportsFloat, gradients: Mapping[str, Any] | None = None
    ) -> bool:
        """Call it after every inner step: `samples` it saw, their mean `loss`.

        Returns True when training is over. The parameters may have changed when it returns. In mode
        `gradients` the loop takes no step of its own; `gradients` are those of the mean loss.
        """
        if self._over:
            return True
        samples = int(samples)
        loss = _number(loss)
        if samples < 1:
            raise MurmurateError(f"step(samples={samples}): give the samples of the inner step, at least 1")
        self._look_at_the_part()
        changed = self._adapter.changed()
        if changed is not None:
            # So that another loop can attach.
            self._wire.close()
            self._over = True
            raise MurmurateError(f"step(): {changed} since this loop attached: attach again")
        if self.mode == "gradients":
            if gradients is None:
                gradients = self._adapter.own_gradients()
            if gradients is None:
                raise MurmurateError(
                    "this run exchanges gradients: pass step(gradients=...) and take no step of your own, "
                    "or take a preset that exchanges deltas"
                )
            self._adapter.gradients(gradients, self._slots[1 - self._current])
        self._wire.step(samples, loss)
        self._serve()
        return self._over

    def _look_at_the_part(self) -> None:
        """Says once that this loop trains what others train too."""
        global _asked
        parts = self._welcome["shard"]["of"]
        if _asked or parts == 1:
            return
        _asked = True
        if self._wire.leads:
            print(
                f"murmurate: this loop never asked for its part of the data, one of {parts} (swarm.shard, "
                "murmurate.shard()): daemons with the same data train the same samples; with data of its own, set "
                'shards.kind = "own"',
                file=sys.stderr,
            )

    # The session.

    def _connect(self) -> None:
        connect = Wire if self._team is None else self._team.connect
        wire = connect(self._path, self._patience)
        try:
            self._introduce(wire)
        except BaseException:
            wire.close()
            raise
        wire.send({"t": "ready"})

    def _introduce(self, wire: Any) -> None:
        """Says what is trained, maps the memory that the daemon gives, and fills it where asked to."""
        adapter = self._adapter
        tensors = adapter.tensors()
        wire.send(
            {
                "t": "hello",
                "version": VERSION,
                "tensors": [
                    {"name": name, "shape": list(shape), "dtype": "float32"} for name, shape in tensors
                ],
                "gradients": adapter.hands_gradients,
                "evaluate": adapter.evaluates,
                "state": adapter.has_state,
                "faulthandler": self._handler,
            }
        )
        welcome, fds = wire.receive_welcome()
        if welcome["t"] == "refuse":
            raise Refused(welcome["reason"])
        if welcome["t"] != "welcome" or len(fds) != 3:
            raise MurmurateError("the daemon speaks another version of the session; update the package")
        values = welcome["values"]
        if values != sum(int(np.prod(shape, dtype=np.int64)) for _, shape in tensors):
            raise MurmurateError("the daemon has another number of values than this model")
        self._memory = mmap.mmap(fds[0], 8 * values)
        self._slots = np.frombuffer(self._memory, dtype=np.float32).reshape(2, values)
        if hasattr(adapter, "mapped"):
            adapter.mapped(self._slots)
        self._files = fds[1:]
        self._wire = wire
        self._welcome = welcome
        self._current = welcome["current"]
        if welcome["write"] is not None:
            adapter.write(self._slots[welcome["write"]])

    def _serve(self) -> None:
        """Performs the daemon's orders until it asks for the next inner step or training is over."""
        while True:
            try:
                message = self._wire.receive()
                kind = message["t"]
                if kind == "go":
                    self._rate = message.get("rate", 1.0)
                    return
                if kind == "deal":
                    self._welcome["shard"] = message["shard"]
                    continue
                if kind == "stop":
                    self._over = True
                    self._wire.close()
                    return
                if kind == "refuse":
                    self._wire.close()
                    raise Refused(message["reason"])
                self._perform(kind, message)
            except Gone:
                self._come_back()

    def _perform(self, kind: str, message: dict[str, Any]) -> None:
        adapter = self._adapter
        answer: dict[str, Any]
        try:
            if kind == "install":
                view = self._slots[message["slot"]]
                for start, end in message["ranges"]:
                    adapter.install(view, start, end)
                self._installed = True
                self._steps = message["steps"]
                answer = {"t": "done"}
            elif kind == "cut":
                adapter.write(self._slots[message["slot"]])
                self._current = message["slot"]
                answer = {"t": "cut", "state": self._small_state(message["state"])}
            elif kind == "evaluate":
                answer = self._score(adapter.evaluate())
            elif kind == "save":
                answer = {"t": "saved", "bytes": self._write_state(message["file"], self._own_state())}
            elif kind == "load":
                self._load_state(_read_all(self._files[message["file"]], message["bytes"]))
                answer = {"t": "done"}
            else:
                raise MurmurateError(f"the daemon asks for `{kind}`; update the package")
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            trace = traceback.format_exc()
            self._wire.send({"t": "error", "message": text[:2000], "traceback": trace[-8000:]})
            self._wire.close()
            raise
        self._wire.send(answer)

    def _score(self, found: Any) -> dict[str, Any]:
        """The message of what `evaluate` returned."""
        values: Any = [found.get(key) for key in SCORE] if isinstance(found, Mapping) else found
        try:
            loss, accuracy, samples = values
            score = {
                "loss": _finite(loss),
                "accuracy": None if accuracy is None else float(accuracy),
                "samples": int(samples),
            }
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(
                "evaluate() must return (loss, accuracy or None, samples), or a dict with `loss`, `samples` and "
                f"perhaps `accuracy`, all numbers; it returned {_shown(found)}"
            ) from None
        named = self._named(found) if isinstance(found, Mapping) else {}
        return {"t": "score", **score, **({"named": named} if named else {})}

    def _named(self, found: Mapping[Any, Any]) -> dict[str, float]:
        """The further numbers that `evaluate` returned. What cannot be shown is left out, and named once."""
        kept: dict[str, float] = {}
        for key in found:
            if key in SCORE:
                continue
            wrong = _wrong_with(key, found[key])
            if wrong is None and len(kept) == NAMED_MAX:
                wrong = f"is beyond {NAMED_MAX} further numbers"
            if wrong is None:
                kept[key] = float(found[key])
            elif str(key) not in self._ignored:
                self._ignored.add(str(key))
                if self._wire.leads:
                    text = f"evaluate() returns {str(key)[:NAME_MAX]!r}, which {wrong}: it is left out"
                    print(f"murmurate: {text}", file=sys.stderr)
        return kept

    def _own_state(self) -> Any:
        """What this process keeps of the state; None where another one keeps it."""
        return self._adapter.state() if self._wire.keeps_state() else None

    def _small_state(self, file: Any) -> int | None:
        if file is None:
            return None
        state = self._own_state()
        if self._wire.total(_state.size(state)) > self._welcome["state_at_cut_bytes_max"] // 2:
            return None
        return self._write_state(file, state)

    def _write_state(self, file: Any, state: Any) -> int:
        pieces = [] if state is None else _state.dump(state)
        fd = self._files[file]
        at, total = self._wire.place(fd, sum(map(len, pieces)))
        for piece in pieces:
            view = memoryview(piece)
            while view:
                written = os.pwrite(fd, view[: 1 << 30], at)
                view, at = view[written:], at + written
        return total

    def _load_state(self, data: bytearray) -> None:
        part = self._wire.part_of(data)
        if part is not None:
            self._adapter.load_state(_state.load(part))
        elif self._wire.leads:
            text = "the optimizer begins afresh: its state in the checkpoint is of another number of ranks"
            print(f"murmurate: {text}", file=sys.stderr)

    def _come_back(self) -> None:
        """The daemon is gone. A supervised loop ends with it, another one waits for it."""
        self._wire.close()
        leads = self._wire.leads
        if self._supervised:
            sys.exit("murmurate: the daemon ended, and its training loop with it" if leads else 1)
        if leads:
            print("murmurate: the daemon is gone; waiting for it to come back", file=sys.stderr)
        until = time.monotonic() + self._patience
        while True:
            try:
                self._connect()
                if leads:
                    print("murmurate: attached again", file=sys.stderr)
                return
            except Gone:
                if time.monotonic() >= until:
                    raise NoDaemon("the daemon closes every connection; see what it says") from None
                time.sleep(0.2)

    def _forget(self) -> None:
        """In a forked worker: its copy of the socket would hide the end of this process."""
        if self._wire is not None:
            self._wire.close()
        self._over = True


def _is_supervised() -> bool:
    return os.environ.get("MURMURATE_SUPERVISED") == "1"


def _number(loss: Any) -> float:
    # A loss of PyTorch carries its graph, and warns where it becomes a number.
    plain = loss.detach() if hasattr(loss, "detach") else loss
    try:
        return float(plain)
    except (TypeError, ValueError, RuntimeError):
        shape = getattr(loss, "shape", None)
        found = f"a {type(loss).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")
        raise MurmurateError(f"step(loss=...): give the mean loss as one number, not {found}") from None


def _finite(loss: Any) -> float | None:
    number = float(loss)
    return number if math.isfinite(number) else None


def _wrong_with(name: Any, value: Any) -> str | None:
    """Why a further number of an evaluation cannot be shown, in words."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > NAME_MAX:
        return f"is no name of 1 to {NAME_MAX} printable characters"
    try:
        # A text is none, even where it can be read as one.
        number = None if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        number = None
    if number is None:
        return f"is a {type(value).__name__} and not one number"
    return None if math.isfinite(number) else f"is {number}"


def _shown(found: Any) -> str:
    """What it is, for a message: its kind, and those of the things within it."""
    kind = type(found).__name__
    if isinstance(found, Mapping):
        return f"a {kind} of " + (", ".join(f"{key!r}: {type(v).__name__}" for key, v in found.items()) or "nothing")
    if isinstance(found, (tuple, list)):
        return f"a {kind} of ({', '.join(type(value).__name__ for value in found)})"
    return "None" if found is None else f"a {kind}"


def _read_all(fd: int, count: int) -> bytearray:
    data = bytearray()
    while len(data) < count:
        piece = os.pread(fd, min(count - len(data), 1 << 30), len(data))
        if not piece:
            raise MurmurateError("the state in the checkpoint is shorter than the daemon says")
        data += piece
    return data


def _print_stacks_on_sigusr1() -> bool:
    """The daemon sends this signal where the loop hangs. Returns whether that works here."""
    try:
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        return True
    except (AttributeError, RuntimeError, ValueError, OSError):
        return False
