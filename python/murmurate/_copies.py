"""Copies between a CUDA device and the memory that the loop shares with its daemon."""

import contextlib
import sys
import weakref

import torch


class Copies:
    """Lets the copies of many tensors run one behind the other, without a wait after each.

    The memory of this machine is pinned, so that the device copies by itself. Where it cannot be pinned,
    copies are right but slower.
    """

    def __init__(self, devices):
        self._devices = [device for device in devices if device.type == "cuda"]
        self._pinned = {}

    def pin(self, name, memory):
        """Pins the array `memory` in place of the one that had this name."""
        if not self._devices:
            return
        if name in self._pinned:
            self._pinned.pop(name)()
        # It returns 0, or an error of CUDA.
        found = int(torch.cuda.cudart().cudaHostRegister(memory.ctypes.data, memory.nbytes, 0))
        if found == 0:
            # Memory must not be given back while it is pinned: this holds it, and ends with this object.
            unpin = self._pinned[name] = weakref.finalize(self, _unpin, memory)
            unpin.atexit = False
            return
        # CUDA reports the error a second time at the next launch: let that be this one.
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device=self._devices[0])
        text = f"the {name} could not be pinned (CUDA error {found}); copies to and from the GPU are slower"
        print(f"murmurate: {text}", file=sys.stderr)

    def finish(self):
        """Waits until all copies have been made."""
        for device in self._devices:
            torch.cuda.current_stream(device).synchronize()


def _unpin(memory):
    torch.cuda.cudart().cudaHostUnregister(memory.ctypes.data)
