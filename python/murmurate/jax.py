"""JAX trees.

    import murmurate.jax as mj

    params = init(jax.random.key(mj.seed()))
    state = optimizer.init(params)                     # optax, or any tree of arrays
    swarm, params, state = mj.attach(params, state)
    done = False
    while not done:
        params, state, loss = train_step(params, state, next(batches))
        params, state, done = swarm.step(params, state, samples=64, loss=loss)

Arrays of JAX cannot be changed, so `step` returns the next ones. They are copies: `device_put` would
keep the shared memory itself, which changes under it.
"""

from __future__ import annotations

from typing import Any, Callable, SupportsFloat, SupportsInt, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import MurmurateError
from ._numpy import Flat, differing, shown
from ._swarm import PATIENCE, Mode, Swarm, seed, shard
from ._types import Evaluate, Place, Score

__all__ = ["JaxSwarm", "attach", "seed", "shard"]


Params = TypeVar("Params")
State = TypeVar("State")


@overload
def attach(
    params: Params,
    state: None = None,
    evaluate: Callable[[Params], Score] | None = None,
    *,
    socket: Place | None = None,
    patience: float = PATIENCE,
) -> tuple[JaxSwarm, Params, None]: ...


@overload
def attach(
    params: Params,
    state: State,
    evaluate: Callable[[Params], Score] | None = None,
    *,
    socket: Place | None = None,
    patience: float = PATIENCE,
) -> tuple[JaxSwarm, Params, State]: ...


def attach(
    params: Any,
    state: Any = None,
    evaluate: Callable[[Any], Score] | None = None,
    *,
    socket: Place | None = None,
    patience: float = PATIENCE,
) -> tuple[JaxSwarm, Any, Any]:
    """Attaches a tree of float32 arrays; see `murmurate.attach`. Returns the swarm, and the parameters and
    the state to begin with: those of a checkpoint where the daemon resumes.

    state: what a checkpoint keeps beside the parameters, such as an optimizer's: a tree of arrays. Leave it
        out where the run exchanges gradients, and pass those to `step`.
    evaluate: a function of `params` that returns loss, accuracy or None, samples.
    """
    adapter = JaxAdapter(params, state, evaluate)
    swarm = JaxSwarm(adapter, socket, patience)
    return swarm, adapter.params, adapter.trees


class JaxSwarm:
    """An attached training loop in JAX; `swarm` is the common part."""

    # Those of `swarm`, by `__getattr__`.
    seed: int
    shard: tuple[int, int]
    mode: Mode
    steps: int
    over: bool
    lr_scale: Callable[[], float]

    def __init__(self, adapter: JaxAdapter, socket: Place | None, patience: float) -> None:
        self._adapter = adapter
        self.swarm = Swarm(adapter, socket=socket, patience=patience)

    @overload
    def step(
        self,
        params: Params,
        state: None = None,
        *,
        samples: SupportsInt,
        loss: SupportsFloat,
        gradients: Params | None = None,
    ) -> tuple[Params, None, bool]: ...

    @overload
    def step(
        self,
        params: Params,
        state: State,
        *,
        samples: SupportsInt,
        loss: SupportsFloat,
        gradients: Params | None = None,
    ) -> tuple[Params, State, bool]: ...

    def step(
        self,
        params: Any,
        state: Any = None,
        *,
        samples: SupportsInt,
        loss: SupportsFloat,
        gradients: Any = None,
    ) -> tuple[Any, Any, bool]:
        """Call it after every inner step. Returns the parameters and the state to go on with, and whether
        training is over."""
        adapter = self._adapter
        adapter.params, adapter.trees = params, state
        done = self.swarm.step(samples, loss, gradients)
        return adapter.params, adapter.trees, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.swarm, name)


class JaxAdapter:
    """A tree of arrays that are replaced."""

    def __init__(self, params: Any, trees: Any, evaluate: Evaluate | None) -> None:
        self.params, self.trees = params, trees
        self._evaluate: Any = evaluate
        leaves, _ = jax.tree_util.tree_flatten_with_path(params)
        named = [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
        for name, leaf in named:
            if getattr(leaf, "dtype", None) != jnp.float32:
                found = getattr(leaf, "dtype", type(leaf).__name__)
                raise MurmurateError(f"parameter `{name}` is {found}, only float32 travels")
        self._flat = Flat([(name, leaf.shape) for name, leaf in named])
        self._shape: Any = jax.tree_util.tree_structure(params)
        self.evaluates = evaluate is not None
        self.has_state = trees is not None
        # With a state the loop steps by itself.
        self.hands_gradients = trees is None

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        return self._flat.tensors

    def write(self, view: np.ndarray) -> None:
        self._copy(self.params, view)

    def install(self, view: np.ndarray, start: int, end: int) -> None:
        leaves, shape = jax.tree_util.tree_flatten(self.params)
        for index, low, high, place in self._flat.pieces(start, end):
            values = view[place : place + high - low]
            if high - low < leaves[index].size:
                whole = np.array(leaves[index]).ravel()
                whole[low:high] = values
                values = whole
            leaves[index] = jnp.array(values.reshape(leaves[index].shape), copy=True)
        self.params = jax.tree_util.tree_unflatten(shape, leaves)

    def changed(self) -> str | None:
        leaves, shape = jax.tree_util.tree_flatten(self.params)
        if shape != self._shape:
            now, _ = jax.tree_util.tree_flatten_with_path(self.params)
            return differing([name for name, _ in self.tensors()], [jax.tree_util.keystr(path) for path, _ in now])
        for (name, shape), leaf in zip(self.tensors(), leaves):
            if getattr(leaf, "shape", None) != shape or leaf.dtype != jnp.float32:
                return f"`{name}` became {shown(leaf)}"
        return None

    def own_gradients(self) -> Any:
        return None

    def gradients(self, given: Any, view: np.ndarray) -> None:
        self._copy(given, view)

    def _copy(self, tree: Any, view: np.ndarray) -> None:
        for leaf, (start, end) in zip(jax.tree_util.tree_leaves(tree), self._flat.places):
            np.copyto(view[start:end].reshape(leaf.shape), np.asarray(leaf))

    def evaluate(self) -> Any:
        return self._evaluate(self.params)

    def state(self) -> Any:
        return [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(self.trees)]

    def load_state(self, saved: Any) -> None:
        leaves, shape = jax.tree_util.tree_flatten(self.trees)
        same = len(leaves) == len(saved) and all(np.shape(a) == b.shape for a, b in zip(leaves, saved))
        if not same:
            raise MurmurateError("the state in the checkpoint has other shapes: is it of another optimizer?")
        pairs = zip(leaves, saved)
        leaves = [jnp.array(new, dtype=jnp.asarray(old).dtype, copy=True) for old, new in pairs]
        self.trees = jax.tree_util.tree_unflatten(shape, leaves)
