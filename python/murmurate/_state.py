"""State of an optimizer as bytes: nested dicts, lists and tuples of numbers, text and arrays.

No pickle: what is read back is data and never code. The bytes are a magic number, the length of a JSON
text, the text, and the arrays that it refers to, back to back.
"""

from __future__ import annotations

import json
import struct

import numpy as np

MAGIC = b"MMSTATE1"


def size(tree):
    """About how many bytes `dump` makes of it; cheap."""
    if isinstance(tree, dict):
        return sum(64 + size(value) for value in tree.values())
    if isinstance(tree, (list, tuple)):
        return sum(16 + size(value) for value in tree)
    return 128 + getattr(tree, "nbytes", 0)


def dump(tree):
    """The tree as a list of pieces of bytes. Arrays are not copied: write them before they change."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_plain(tree, arrays)).encode()
    return [MAGIC + struct.pack("<Q", len(text)) + text] + arrays


def load(data):
    """The tree that `dump` has made bytes of."""
    if data[:8] != MAGIC:
        raise ValueError("the state in the checkpoint is not of this package")
    (length,) = struct.unpack_from("<Q", data, 8)
    plain = json.loads(bytes(data[16 : 16 + length]))
    return _tree(plain, memoryview(data), [16 + length])


def _plain(tree, arrays):
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    if isinstance(tree, float):
        return {"float": tree.hex()}
    if isinstance(tree, np.generic):
        tree = np.asarray(tree)
    if isinstance(tree, np.ndarray):
        if tree.dtype.hasobject:
            raise TypeError("an array of Python objects cannot be kept in a checkpoint")
        # No copy of an optimizer's moments: what is returned is written at once.
        arrays.append(np.ascontiguousarray(tree).reshape(-1).view(np.uint8))
        return {"array": tree.dtype.str, "shape": list(tree.shape)}
    if isinstance(tree, dict):
        return {"dict": [[_plain(k, arrays), _plain(v, arrays)] for k, v in tree.items()]}
    if isinstance(tree, (list, tuple)):
        kind = "list" if isinstance(tree, list) else "tuple"
        return {kind: [_plain(value, arrays) for value in tree]}
    raise TypeError(
        f"a {type(tree).__name__} cannot be kept in a checkpoint: give state of numbers, text, arrays, "
        "lists and dicts"
    )


def _tree(plain, data, at):
    if not isinstance(plain, dict):
        return plain
    if "float" in plain:
        return float.fromhex(plain["float"])
    if "array" in plain:
        dtype = np.dtype(plain["array"])
        count = int(np.prod(plain["shape"], dtype=np.int64))
        start, at[0] = at[0], at[0] + count * dtype.itemsize
        array = np.frombuffer(data[start : at[0]], dtype=dtype)
        return array.reshape(plain["shape"]).copy()
    if "dict" in plain:
        return {_tree(k, data, at): _tree(v, data, at) for k, v in plain["dict"]}
    if "list" in plain:
        return [_tree(value, data, at) for value in plain["list"]]
    return tuple(_tree(value, data, at) for value in plain["tuple"])
