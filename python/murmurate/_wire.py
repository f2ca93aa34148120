"""The socket to the daemon: frames of JSON, and the three files that come with the welcome.

A frame is the length of its text as an unsigned 32-bit number in little endian, then the text. The
messages are those of `attach/src/message.rs`.
"""

import json
import math
import os
import socket
import struct
import time

from ._errors import NoDaemon, Refused

VERSION = 1
FRAME_BYTES_MAX = 16 << 20
SOCKET_PATH_MAX = 100
GO = b'{"t":"go"}'

# Begins a state that several ranks keep, each its part.
RANKS = b"MMRANKS1"


class Gone(Exception):
    """The daemon closed the connection."""


def socket_path(path=None):
    """The daemon's socket: `path`, or the variable MURMURATE_SOCKET, or that of ./murmurate-state."""
    if path is None:
        path = os.environ.get("MURMURATE_SOCKET")
    if path is None:
        path = os.path.join("murmurate-state", "attach", "socket")
    elif os.path.isdir(path):
        path = os.path.join(path, "attach", "socket")
    return os.fspath(path)


def read_run(path, patience):
    """What the daemon says of its run before a trainer attaches. Waits for it up to `patience` s."""
    about = os.path.join(os.path.dirname(path), "run.json")
    until = time.monotonic() + patience
    while True:
        try:
            with open(about, encoding="utf-8") as file:
                return json.load(file)
        except PermissionError:
            raise Refused(other_user(path)) from None
        except (FileNotFoundError, NotADirectoryError):
            if time.monotonic() >= until:
                raise NoDaemon(no_daemon(path)) from None
        time.sleep(0.05)


def no_daemon(path):
    return (
        f"no daemon listens at {path}: start one with `murmurate run --trainer attach`, or start this "
        "script by `murmurate run -- python train.py`; socket= or MURMURATE_SOCKET names another one"
    )


def other_user(path):
    return f"{path} belongs to another user: start the daemon and its training loop as the same user"


class Wire:
    """One connection. Raises `Gone` when the daemon closes it."""

    # Of several processes that are one loop, the one that has the connection; see `_ranks.py`.
    leads = True

    def __init__(self, path, patience):
        self._bytes = bytearray()
        self._fds = []
        until = time.monotonic() + patience
        while True:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._connect(path)
                return
            except PermissionError:
                self._socket.close()
                raise Refused(other_user(path)) from None
            except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
                self._socket.close()
                if time.monotonic() >= until:
                    raise NoDaemon(no_daemon(path)) from None
            time.sleep(0.1)

    def _connect(self, path):
        if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
            self._socket.connect(path)
            return
        # A socket's address has room for about 100 bytes; the path of a descriptor is short.
        directory = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            self._socket.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        finally:
            os.close(directory)

    def close(self):
        self._socket.close()
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def send(self, message):
        self.send_text(json.dumps(message, allow_nan=False).encode())

    def send_text(self, text):
        try:
            self._socket.sendall(struct.pack("<I", len(text)) + text)
        except (BrokenPipeError, ConnectionResetError):
            # What the daemon said last, such as a refusal, can still be read.
            pass

    def step(self, samples, loss):
        text = repr(loss) if math.isfinite(loss) else "null"
        self.send_text(b'{"t":"step","samples":%d,"loss":%s}' % (samples, text.encode()))

    def total(self, size):
        """Bytes of the states of all processes of this loop."""
        return size

    def keeps_state(self):
        """Whether this process keeps a part of the state."""
        return True

    def place(self, fd, size):
        """Empties the file of the state; where this process's part begins, and the bytes of all."""
        os.ftruncate(fd, 0)
        return 0, size

    def part_of(self, data):
        """This process's part of the state in a checkpoint; None where it is of other processes."""
        return None if data[:8] == RANKS else data

    def receive_welcome(self):
        """The first message and the file descriptors that come with it."""
        try:
            piece, fds, _, _ = socket.recv_fds(self._socket, 1 << 16, 3)
        except ConnectionResetError:
            raise Gone() from None
        if not piece:
            raise Gone()
        self._fds += fds
        self._bytes += piece
        return json.loads(self.receive_text()), fds

    def receive(self):
        text = self.receive_text()
        return {"t": "go"} if text == GO else json.loads(text)

    def receive_text(self):
        buffer = self._bytes
        while True:
            if len(buffer) >= 4:
                (length,) = struct.unpack_from("<I", buffer)
                if length > FRAME_BYTES_MAX:
                    raise Gone()
                if len(buffer) >= 4 + length:
                    text = bytes(buffer[4 : 4 + length])
                    del buffer[: 4 + length]
                    return text
            try:
                piece = self._socket.recv(1 << 16)
            except ConnectionResetError:
                raise Gone() from None
            if not piece:
                raise Gone()
            buffer += piece
