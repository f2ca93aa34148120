"""Train one model on many machines without a server, from a training loop in any framework.

    import murmurate

    params = {"w": numpy.zeros((784, 10), "float32")}
    swarm = murmurate.attach(params, evaluate=evaluate)
    for x, y in batches:
        loss = train_step(params, x, y)                # changes the arrays in place
        if swarm.step(samples=len(x), loss=loss):      # may change them too
            break

Start it by `murmurate run --config node.toml -- python train.py`, or by hand beside a daemon that was
started with `murmurate run --trainer attach`. PyTorch modules: `murmurate.torch`. JAX trees:
`murmurate.jax`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar

from ._errors import MurmurateError, NoDaemon, Refused
from ._numpy import NumpyAdapter
from ._swarm import PATIENCE, Swarm, mode, run_info, seed, shard
from ._types import Place, Score, Stateful

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Params = TypeVar("Params", bound=Mapping[str, NDArray[np.float32]])

__version__: str

__all__ = [
    "MurmurateError",
    "NoDaemon",
    "Refused",
    "Swarm",
    "__version__",
    "attach",
    "mode",
    "run_info",
    "seed",
    "shard",
]


def attach(
    params: Params,
    optimizer: Mapping[str, Any] | Stateful | None = None,
    evaluate: Callable[[Params], Score] | None = None,
    *,
    socket: Place | None = None,
    patience: float = PATIENCE,
) -> Swarm:
    """Attaches a training loop to the daemon of this machine and waits until the first step is due.

    params: a dict of names and float32 NumPy arrays, which are updated in place.
    optimizer: what a checkpoint keeps beside them: a dict of arrays and numbers, updated in place, or an
        object with `state_dict()` and `load_state_dict()`.
    evaluate: a function of `params` that returns the mean loss, the accuracy or None, and the number of
        held-out samples, or a dict with `loss`, `samples` and perhaps `accuracy`, and with further numbers, which the
        daemon shows under their names.
    socket: the daemon's socket or directory [default: MURMURATE_SOCKET, else ./murmurate-state].
    patience: seconds to wait for a daemon, and for it to come back when it ended.

    Raises NoDaemon where no daemon is found, Refused where it has a reason to refuse this loop.
    """
    return Swarm(NumpyAdapter(params, optimizer, evaluate), socket=socket, patience=patience)


def __getattr__(name: str) -> str:
    if name == "__version__":
        from ._version import version

        globals()[name] = found = version()
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
