"""What can go wrong with an attached trainer: one line each that says what to do."""

from __future__ import annotations


class MurmurateError(RuntimeError):
    """An attached trainer cannot go on."""


class NoDaemon(MurmurateError):
    """No daemon was found, or it did not come back."""


class Refused(MurmurateError):
    """The daemon refused this trainer."""


for _error in (MurmurateError, NoDaemon, Refused):
    # As users name them, in tracebacks and in the daemon's lines.
    _error.__module__ = "murmurate"
