"""Modules of DistributedDataParallel, and parameters that `fully_shard` has divided among ranks.

A rank of FSDP2 holds some rows of every parameter, which are one range of its values.
"""

import torch
import torch.distributed as dist

from ._errors import MurmurateError


class Part:
    """What this process holds of a parameter or buffer: the values from `start` on, in `shape`."""

    def __init__(self, name, parameter):
        self._parameter = parameter
        self.sharded = hasattr(parameter, "placements")
        if self.sharded:
            self.mesh = parameter.device_mesh
            row, first = _rows(name, parameter), parameter.to_local()
            self.shape = tuple(first.shape)
            self.start = row * (parameter.numel() // max(parameter.shape[0], 1))
            # Of the ranks that hold the same rows, the first one writes them.
            ranks = zip(parameter.placements, self.mesh.get_coordinate())
            self.written_elsewhere = any(placed.is_replicate() and rank > 0 for placed, rank in ranks)
        else:
            self.shape, self.start = tuple(parameter.shape), 0
            self.written_elsewhere = dist.is_available() and dist.is_initialized() and dist.get_rank() > 0

    def values(self):
        """The values as they are now; what is written to them becomes the parameter's."""
        return self.values_of(self._parameter).detach()

    def values_of(self, tensor):
        """As `values`, of a tensor that is divided in the same way, such as the gradient."""
        return tensor.to_local() if hasattr(tensor, "placements") else tensor


def _rows(name, parameter):
    """The first row that this rank holds."""
    rows, first = parameter.shape[0] if parameter.dim() else 1, 0
    for dimension, placed in enumerate(parameter.placements):
        if placed.is_replicate():
            continue
        if type(placed).__name__ != "Shard" or placed.dim != 0:
            raise MurmurateError(
                f"parameter `{name}` is divided as {placed}: only rows travel, as fully_shard divides by "
                "default; tensor parallelism is not supported"
            )
        # As torch.chunk: all parts but the last ones have the same number of rows.
        size = -(-rows // parameter.device_mesh.size(dimension))
        skipped = min(size * parameter.device_mesh.get_local_rank(dimension), rows)
        first, rows = first + skipped, min(size, rows - skipped)
    if rows != parameter.to_local().shape[0]:
        raise MurmurateError(f"parameter `{name}` is divided unevenly in a way that is not known here")
    return first


def bare(model):
    """The module within DistributedDataParallel."""
    kind = type(model).__name__
    if kind == "FullyShardedDataParallel":
        raise MurmurateError("FullyShardedDataParallel is not supported: use fully_shard (FSDP2)")
    return model.module if kind in ("DistributedDataParallel", "DataParallel") else model


def plain(name):
    """A parameter's name without what torch.compile and activation checkpointing put into it."""
    return name.replace("_orig_mod.", "").replace("_checkpoint_wrapped_module.", "")


def reshard(model):
    """Frees parameters that a pass forward has gathered: they would hide what is written to the rows."""
    for module in model.modules():
        if hasattr(module, "set_reshard_after_backward"):
            module.reshard()


def taken_apart(tensor, to_numpy):
    """A divided tensor for `_state.dump`: this rank's rows, and how it was divided."""
    dims = [None if placed.is_replicate() else placed.dim for placed in tensor.placements]
    return {"divided": dims, "shape": list(tensor.shape), "local": to_numpy(tensor.to_local())}


def is_taken_apart(tree):
    return list(tree) == ["divided", "shape", "local"]


def put_together(tree, local, meshes):
    """The divided tensor again, on the mesh of the parameters."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    placements = [Replicate() if dim is None else Shard(dim) for dim in tree["divided"]]
    mesh = next((mesh for mesh in meshes if mesh.ndim == len(placements)), None)
    if mesh is None:
        raise MurmurateError("the optimizer's state in the checkpoint is divided otherwise than the model")
    shape = torch.Size(tree["shape"])
    stride = torch.empty(shape, device="meta").stride()
    local = local.to(mesh.device_type)
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)
