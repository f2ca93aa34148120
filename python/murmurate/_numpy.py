"""Parameters that are a dict of NumPy arrays, updated in place."""

import numpy as np

from ._errors import MurmurateError


class Flat:
    """Where each tensor lies in the flat parameters; adapters copy piece by piece with it."""

    def __init__(self, tensors, starts=None):
        """starts: where each tensor begins [default: where the one before it ends]."""
        self.tensors = [(name, tuple(int(n) for n in shape)) for name, shape in tensors]
        self.places, end = [], 0
        for index, (_, shape) in enumerate(self.tensors):
            start = end if starts is None else starts[index]
            end = start + int(np.prod(shape, dtype=np.int64))
            self.places.append((start, end))

    def pieces(self, start, end):
        """For each tensor with values from `start` to `end`: its index, the range within it, and its
        place in the flat parameters."""
        for index, (first, last) in enumerate(self.places):
            if first < end and start < last:
                low, high = max(start, first), min(end, last)
                yield index, low - first, high - first, low


class NumpyAdapter:
    """A dict of float32 arrays."""

    hands_gradients = True

    def __init__(self, params, optimizer, evaluate):
        if not isinstance(params, dict) or not params:
            raise MurmurateError("params must be a dict of names and NumPy arrays")
        for name, array in params.items():
            check(name, array)
        self._params = params
        self._optimizer = optimizer
        self._evaluate = evaluate
        self._flat = Flat([(name, array.shape) for name, array in params.items()])
        self._names = list(params)
        self.evaluates = evaluate is not None
        self.has_state = optimizer is not None
        if optimizer is not None:
            _check_optimizer(optimizer)

    def tensors(self):
        return self._flat.tensors

    def write(self, view):
        for (start, end), array in zip(self._flat.places, self._params.values()):
            np.copyto(view[start:end].reshape(array.shape), array)

    def install(self, view, start, end):
        arrays = list(self._params.values())
        for index, low, high, place in self._flat.pieces(start, end):
            array = arrays[index]
            values = view[place : place + high - low]
            if high - low == array.size:
                np.copyto(array, values.reshape(array.shape))
            else:
                array.flat[low:high] = values

    def gradients(self, given, view):
        for (name, array), (start, end) in zip(self._params.items(), self._flat.places):
            gradient = np.asarray(given[name], dtype=np.float32) if name in given else None
            if gradient is None:
                raise MurmurateError(f"gradients has no `{name}`: give one array for each parameter")
            if gradient.shape != array.shape:
                raise MurmurateError(
                    f"the gradient of `{name}` has shape {gradient.shape}, the parameter {array.shape}"
                )
            np.copyto(view[start:end].reshape(array.shape), gradient)

    def changed(self):
        if list(self._params) != self._names:
            return differing(self._names, self._params)
        for (name, shape), array in zip(self._flat.tensors, self._params.values()):
            # Arithmetic with Python's numbers makes float64, of which float32 travels.
            if getattr(array, "shape", None) != shape or array.dtype not in (np.float32, np.float64):
                return f"`{name}` became {shown(array)}"
        return None

    def own_gradients(self):
        return None

    def evaluate(self):
        return self._evaluate(self._params)

    def state(self):
        optimizer = self._optimizer
        return optimizer if isinstance(optimizer, dict) else optimizer.state_dict()

    def load_state(self, tree):
        if isinstance(self._optimizer, dict):
            _put(self._optimizer, tree)
        else:
            self._optimizer.load_state_dict(tree)


def differing(before, now):
    """In words, which names came, went, or changed places."""
    came = [f"`{name}`" for name in now if name not in before]
    went = [f"`{name}`" for name in before if name not in now]
    parts = [f"{listed(came)} came"] if came else []
    parts += [f"{listed(went)} went"] if went else []
    return " and ".join(parts) or "the order of the parameters changed"


def shown(array):
    """What an array is, for a message."""
    dtype = getattr(array, "dtype", None)
    return f"a {type(array).__name__}" if dtype is None else f"{dtype} of shape {tuple(array.shape)}"


def listed(names):
    """The first of these names."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def check(name, array):
    """Refuses what cannot be trained, by name."""
    if not isinstance(name, str):
        raise MurmurateError(f"the name {name!r} of a parameter is no text")
    if not isinstance(array, np.ndarray):
        raise MurmurateError(f"parameter `{name}` is a {type(array).__name__}, not a NumPy array")
    if array.dtype != np.float32:
        raise MurmurateError(
            f"parameter `{name}` is {array.dtype}, only float32 travels: use array.astype(numpy.float32)"
        )
    if not array.flags.writeable:
        raise MurmurateError(f"parameter `{name}` cannot be written to: pass array.copy()")
    if array.size == 0:
        raise MurmurateError(f"parameter `{name}` of shape {array.shape} has no values")


def _check_optimizer(optimizer):
    both = hasattr(optimizer, "state_dict") and hasattr(optimizer, "load_state_dict")
    if not isinstance(optimizer, dict) and not both:
        raise MurmurateError(
            "optimizer must be a dict of arrays and numbers, or have state_dict() and load_state_dict()"
        )


def _put(own, saved):
    """Puts saved values into a dict of arrays, in place where the shapes allow."""
    for key, value in saved.items():
        present = own.get(key)
        if isinstance(present, np.ndarray) and present.shape == getattr(value, "shape", None):
            np.copyto(present, value)
        elif isinstance(present, dict) and isinstance(value, dict):
            _put(present, value)
        else:
            own[key] = value
