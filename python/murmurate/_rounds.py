"""The rounds of a daemon as they end: from its HTTP server, or from the files of `daemon.metrics_dir`."""

from __future__ import annotations

import ipaddress
import json
import os
import time
import urllib.parse
import urllib.request
from typing import Any, TextIO

from ._errors import MurmurateError, NoDaemon

# Keys of a round, as `metrics.jsonl` names them, that are not values to plot.
NOT_METRICS = frozenset(["unix_s", "round"])

# Seconds for one answer of a daemon.
_ANSWER_S = 10.0

# An answer holds at most 4,096 rounds.
_ANSWER_BYTES_MAX = 16 << 20

# What a history calls the values that `metrics.jsonl` has too.
_RENAMED = {"seconds": "round_s", "eval_loss": "test_loss", "accuracy": "test_accuracy"}

_COUNTERS = ("voids", "alone", "expired_waits", "catch_ups", "misbehaved", "refused", "work_failed")


def source(place: str) -> HttpRounds | FileRounds:
    """The daemon at `place`: its URL, its directory, or a folder of metrics files."""
    if place.startswith(("http://", "https://")):
        return HttpRounds(place)
    if os.path.isfile(os.path.join(place, "metrics.jsonl")):
        return FileRounds(place)
    address = os.path.join(place, "http.addr")
    if os.path.isfile(address):
        with open(address, encoding="utf-8") as file:
            return HttpRounds("http://" + file.read().strip())
    below = sorted(os.listdir(place)) if os.path.isdir(place) else []
    found = [name for name in below if os.path.isfile(os.path.join(place, name, "metrics.jsonl"))]
    if len(found) == 1:
        return FileRounds(os.path.join(place, found[0]))
    if found:
        raise MurmurateError(f"{place} holds metrics of several daemons; name one: {', '.join(found)}")
    raise NoDaemon(
        f"{place} is no daemon: give the URL that it prints, its directory (`daemon.dir`) while it runs, "
        "or its folder below `daemon.metrics_dir`"
    )


class HttpRounds:
    """The rounds of a daemon that runs. A round is given once a later one has ended or the daemon ends,
    because its evaluation comes after it."""

    def __init__(self, url: str, patience: float = 30.0) -> None:
        self.url, self.patience = url.rstrip("/"), patience
        # A proxy does not reach this machine's own addresses.
        proxies = [urllib.request.ProxyHandler({})] if _is_here(url) else []
        self._open = urllib.request.build_opener(*proxies).open
        self._since = -1
        self._silent_since: float | None = None
        self.ended, self.complete = False, False

    def about(self) -> dict[str, Any]:
        """What does not change: who the daemon is and what it trains."""
        status = self._ask("/status")
        keys = ("run", "peer", "plan", "preset", "version", "rounds", "ranks")
        return {key: status[key] for key in keys} | {"parameters": status["memory"]["parameters"]}

    def take(self) -> list[dict[str, Any]]:
        """The rounds that ended since the last call. Sets `ended` after the last one."""
        try:
            status = self._ask("/status")
            points = self._ask(f"/api/v1/history?since={self._since}" if self._since >= 0 else "/api/v1/history")
        except NoDaemon:
            # A daemon that is restarted goes on; one that left does not come back.
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            self.ended = now - self._silent_since >= self.patience
            return []
        self._silent_since = None
        self.ended = self.complete = status["phase"] in ("finished", "leaving", "left")
        points = points["points"]
        if not self.ended and points:
            points.pop()
        if points:
            self._since = points[-1]["round"]
        return [self._round(point, status) for point in points]

    def close(self) -> None:
        """Nothing is held between two questions."""

    @staticmethod
    def _round(point: Any, status: Any) -> dict[str, Any]:
        values = {_RENAMED.get(key, key): value for key, value in point.items()}
        values = {key: value for key, value in values.items() if _is_number(value)}
        values.update({key: status[key] for key in _COUNTERS}, inner_steps=status["inner_steps"])
        return values

    def _ask(self, path: str) -> Any:
        try:
            with self._open(self.url + path, timeout=_ANSWER_S) as answer:
                return json.loads(answer.read(_ANSWER_BYTES_MAX))
        except (OSError, ValueError) as error:
            raise NoDaemon(f"no daemon answers at {self.url}: {error}") from None


class FileRounds:
    """The lines of `metrics.jsonl` and of the file before it. It follows a file that is replaced."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "metrics.jsonl")
        self._older = os.path.join(folder, "metrics.1.jsonl")
        self._file: TextIO | None = None
        self._torn = ""
        self.folder = folder
        # Files do not say whether more will come.
        self.ended, self.complete = False, True

    def about(self) -> dict[str, Any]:
        """The daemon's id is the name of the folder; the files say no more."""
        return {"peer": os.path.basename(os.path.abspath(self.folder))}

    def take(self) -> list[dict[str, Any]]:
        """The rounds that were written since the last call."""
        lines = []
        if self._file is None:
            if os.path.isfile(self._older):
                with open(self._older, encoding="utf-8") as file:
                    lines += file.read().splitlines()
            self._file = self._open()
        if self._file is not None:
            lines += self._whole(self._file.read())
            if self._replaced(self._file):
                lines += self._whole(self._file.read())
                self._file.close()
                self._file, self._torn = self._open(), ""
                lines += self._whole(self._file.read()) if self._file else []
        return [values for values in map(_parsed, lines) if values]

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> TextIO | None:
        try:
            return open(self._path, encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _replaced(self, file: Any) -> bool:
        try:
            return os.stat(self._path).st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False

    def _whole(self, text: str) -> list[str]:
        """The complete lines; the beginning of the next one is kept."""
        *lines, self._torn = (self._torn + text).split("\n")
        return lines


def _is_here(url: str) -> bool:
    """Whether an address of this machine alone is meant."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified


def _parsed(line: str) -> dict[str, Any] | None:
    """The numbers of a line. A line that a crash has torn is left out."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict) or not _is_number(values.get("round")):
        return None
    return {key: value for key, value in values.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
