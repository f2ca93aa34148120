"""A daemon for tests: it listens at a socket, and its test tells a trainer what to do."""

import json
import mmap
import os
import socket
import struct
import tempfile

import numpy as np


class Daemon:
    """Has one trainer. Every method sends an order and returns the answer."""

    def __init__(self, folder, mode="deltas"):
        self.path = os.path.join(folder, "socket")
        self._mode, self.fds = mode, []
        with open(os.path.join(folder, "run.json"), "w") as file:
            json.dump({"mode": mode}, file)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._listener.settimeout(120)

    def attach(self, write=0):
        self._socket, _ = self._listener.accept()
        self._socket.settimeout(120)
        self.hello = self.receive()
        values = sum(int(np.prod(tensor["shape"])) for tensor in self.hello["tensors"])
        self.fds = [_file(), _file(), _file()]
        os.ftruncate(self.fds[0], 8 * values)
        self.slots = np.frombuffer(mmap.mmap(self.fds[0], 8 * values), np.float32).reshape(2, values)
        welcome = {"t": "welcome", "run": "r", "seed": 1, "shard": {"index": 0, "of": 1}}
        welcome.update(mode=self._mode, values=values, current=0, write=write, state_at_cut_bytes_max=1 << 20)
        socket.send_fds(self._socket, [self._frame(welcome)], self.fds)
        return self.receive()

    def tell(self, t, **more):
        self._socket.sendall(self._frame({"t": t, **more}))

    def ask(self, t, **more):
        self.tell(t, **more)
        return self.receive()

    def steps(self, count):
        """The answers to `count` inner steps."""
        return [self.ask("go") for _ in range(count)]

    def install(self, slot, start, end):
        return self.ask("install", slot=slot, ranges=[(start, end)], steps=0)

    def receive(self):
        (length,) = struct.unpack("<I", self._read(4))
        return json.loads(self._read(length))

    def close(self):
        self._socket.close()
        self._listener.close()
        for fd in self.fds:
            os.close(fd)

    def _read(self, count):
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise EOFError("the trainer is gone")
            data += piece
        return data

    @staticmethod
    def _frame(message):
        text = json.dumps(message).encode()
        return struct.pack("<I", len(text)) + text


def _file():
    """A file that no path leads to: in memory, as the daemon's, where the system can do so."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("test")
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd
