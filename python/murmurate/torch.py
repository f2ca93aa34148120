"""PyTorch modules.

    import murmurate.torch as mm

    torch.manual_seed(mm.seed())
    model, optimizer = make()
    swarm = mm.attach(model, optimizer)
    for x, y in loader:
        loss = loss_of(model(x), y)
        loss.backward(); optimizer.step(); optimizer.zero_grad()
        if swarm.step(samples=len(x), loss=loss):
            break

Parameters that require gradients when the module is attached travel, in the order of
`named_parameters()`, on any device; tied weights travel once. Make frozen ones the same on all daemons.
Those of another type than float32 have float32 masters here, because small changes would vanish in
bfloat16. Buffers, such as the running means of batch normalisation, stay with each daemon: its checkpoint
and its export have those that `state_dict()` has, other daemons never see them. A line says so. With
`buffers="mean"` those in floating point travel behind the parameters.

Several ranks of torch.distributed on one machine, such as those of torchrun, are one loop: all of them call
`attach` and `step`, with their own samples and losses. The model is one of DistributedDataParallel, or was
sharded by `fully_shard` (FSDP2). Names are those of the module within DistributedDataParallel and
torch.compile, so that daemons with and without them train together.

Where the run exchanges gradients (`mode()` is "gradients"), attach without an optimizer, call
`loss.backward()` and then `swarm.step`, which takes the gradients and clears them.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, Sequence

import numpy as np
import torch

from . import _ranks
from ._copies import Copies
from ._errors import MurmurateError
from ._numpy import Flat, listed
from ._sharded import Part, bare, is_taken_apart, plain, put_together, reshard, taken_apart
from ._swarm import PATIENCE, Swarm, mode, run_info, seed, shard
from ._types import Buffers, Evaluate, Place, Score, Stateful

__all__ = ["attach", "mode", "seed", "shard"]


def attach(
    model: torch.nn.Module,
    optimizer: Stateful | None = None,
    evaluate: Callable[[Any], Score] | None = None,
    *,
    buffers: Buffers = "local",
    socket: Place | None = None,
    patience: float = PATIENCE,
) -> Swarm:
    """Attaches a module to the daemon; see `murmurate.attach`.

    optimizer: one of torch.optim, or anything with `state_dict()` and `load_state_dict()`; checkpoints keep
        its state. Leave it out where the run exchanges gradients.
    evaluate: a function of `model` that returns loss, accuracy or None, samples, or a dict of these with
        further numbers, which the daemon shows under their names. It is called in
        evaluation mode, without gradients. With several ranks it is called on all of them: each measures
        its part of the held-out samples, and the means are weighted by samples. The module within
        DistributedDataParallel is passed.
    buffers: "local", or "mean": persistent buffers in floating point are averaged as the parameters are. They must
        be changed in place, as batch normalisation does. Of several ranks those of rank 0 count. A buffer has no
        gradient, so a run that exchanges gradients is refused.
    """
    adapter = TorchAdapter(model, optimizer, evaluate, buffers)
    team = _ranks.team(adapter.sharded)
    leads = team is None or team.rank == 0
    if leads and adapter.averages and run_info(socket, patience)["mode"] == "gradients":
        raise MurmurateError('this run exchanges gradients, and buffers have none: attach with buffers="local"')
    own = adapter.own_buffers()
    if own and leads:
        text = f"buffers do not travel ({listed(own)}): each daemon has its own, which its checkpoint and export have"
        print(f'murmurate: {text}; buffers="mean" averages them where deltas are exchanged', file=sys.stderr)
    return Swarm(adapter, socket=socket, patience=patience, team=team)


class TorchAdapter:
    """The parameters of a module that require gradients, and behind them the buffers that are averaged."""

    def __init__(self, model: Any, optimizer: Any, evaluate: Evaluate | None, buffers: Buffers = "local") -> None:
        if buffers not in ("local", "mean"):
            raise MurmurateError(f'buffers must be "local" or "mean", not {buffers!r}')
        self._model, self._optimizer = bare(model), optimizer
        self._evaluate: Any = evaluate
        reshard(self._model)
        named = [(plain(n), p) for n, p in self._model.named_parameters() if p.requires_grad]
        for name, parameter in named:
            _check(f"parameter `{name}`", parameter)
        if not named:
            raise MurmurateError("no parameter of the model requires a gradient")
        self._parameters = [parameter for _, parameter in named]
        kept = {plain(name) for name in self._model.state_dict()}
        self._buffers = {plain(n): buffer for n, buffer in self._model.named_buffers() if plain(n) in kept}
        averaged = [(n, self._buffers.pop(n)) for n in self._differing()] if buffers == "mean" else []
        for name, buffer in averaged:
            _check_buffer(name, buffer)
        self.averages = bool(averaged)
        # Places of those that an outer momentum must not carry below zero.
        self._variances = {i for i, (name, _) in enumerate(averaged, len(named)) if name.endswith("running_var")}
        named += averaged
        # With every name of tied tensors.
        travelling = {id(tensor) for _, tensor in named}
        self._seen = {
            name: (tensor, tensor.dtype, tensor.device, tensor.shape)
            for name, tensor in self._tensors()
            if id(tensor) in travelling
        }
        self._parts = [Part(name, tensor) for name, tensor in named]
        self.sharded = any(part.sharded for part in self._parts)
        self._flat = Flat([(name, tensor.shape) for name, tensor in named])
        # Where what this process holds lies.
        starts = [start for start, _ in self._flat.places]
        self._held = Flat(
            [(name, part.shape) for (name, _), part in zip(named, self._parts)],
            [start + part.start for start, part in zip(starts, self._parts)],
        )
        self._copies = Copies({tensor.device for _, tensor in named})
        self._masters = self._make_masters()
        self.evaluates = evaluate is not None
        self.has_state = optimizer is not None or bool(self._buffers)
        self.hands_gradients = optimizer is None and not self.averages

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        return self._flat.tensors

    def own_buffers(self) -> list[str]:
        """As messages name them, the buffers that come to differ among daemons."""
        return [f"`{name}`" for name in self._differing()]

    def _differing(self) -> list[str]:
        return [name for name, buffer in self._buffers.items() if buffer.is_floating_point()]

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        """The module's parameters and, if some travel, its buffers, tied ones with every name."""
        yield from self._model.named_parameters(remove_duplicate=False)
        if self.averages:
            yield from self._model.named_buffers(remove_duplicate=False)

    def mapped(self, memory: np.ndarray) -> None:
        self._copies.pin("shared memory", memory)

    def _make_masters(self) -> dict[int, torch.Tensor]:
        """Copies in float32 in this machine's memory of what is of another type, outermost first
        whatever their strides."""
        held = enumerate(part.values() for part in self._parts)
        short = {index: values for index, values in held if values.dtype != torch.float32}
        room = np.empty(sum(values.numel() for values in short.values()), np.float32)
        if room.size:
            self._copies.pin("masters", room)
        masters, start = {}, 0
        for index, values in short.items():
            end = start + values.numel()
            masters[index] = torch.from_numpy(room[start:end]).view(values.shape)
            masters[index].copy_(values)
            start = end
        return masters

    @torch.no_grad()
    def write(self, view: np.ndarray) -> None:
        for index, (start, end) in enumerate(self._held.places):
            part = self._parts[index]
            if part.written_elsewhere:
                continue
            values = part.values()
            into = torch.from_numpy(view[start:end]).view(values.shape)
            master = self._masters.get(index)
            if master is None:
                into.copy_(values, non_blocking=True)
                continue
            # With what training has changed since the master was rounded, on the parameter's device.
            new = master.to(values.device, non_blocking=True)
            new = new + (values.float() - new.to(values.dtype).float())
            master.copy_(new, non_blocking=True)
            into.copy_(new, non_blocking=True)
        self._copies.finish()

    @torch.no_grad()
    def install(self, view: np.ndarray, start: int, end: int) -> None:
        # A pass without a backward one may have left parameters of FSDP2 gathered.
        reshard(self._model)
        for index, low, high, place in self._held.pieces(start, end):
            parameter = self._parts[index].values()
            values = torch.from_numpy(view[place : place + high - low])
            if index in self._variances:
                values = values.clamp(min=0)
            master = self._masters.get(index)
            if master is not None:
                # The rest of the tensor may have been trained since its master was written.
                master.view(-1)[low:high] = values
            if values.dtype != parameter.dtype:
                # Rounded where the parameter is.
                values = values.to(parameter.device, non_blocking=True)
            if high - low == parameter.numel():
                parameter.copy_(values.view(parameter.shape), non_blocking=True)
            else:
                flat = parameter.reshape(-1)
                flat[low:high] = values.to(parameter.device, parameter.dtype)
                if not parameter.is_contiguous():
                    parameter.copy_(flat.view(parameter.shape))
        self._copies.finish()

    def changed(self) -> str | None:
        """Frozen parameters may come, go and change, and one that travels may be frozen for a while."""
        if self.sharded:
            reshard(self._model)
        missing, changes = len(self._seen), []
        for name, tensor in self._tensors():
            seen = self._seen.get(name)
            kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
            if seen is None:
                if kind == "parameter" and tensor.requires_grad:
                    changes.append(f"`{plain(name)}` came to require a gradient")
                continue
            missing -= 1
            before, dtype, device, shape = seen
            if tensor is not before:
                changes.append(f"`{plain(name)}` became another {kind}")
            elif tensor.dtype != dtype:
                changes.append(f"`{plain(name)}` became {tensor.dtype}")
            elif tensor.device != device:
                changes.append(f"`{plain(name)}` moved to {tensor.device}")
            elif tensor.shape != shape:
                changes.append(f"the shape of `{plain(name)}` changed to {tuple(tensor.shape)}")
        if missing:
            names = {name for name, _ in self._tensors()}
            changes += [f"`{plain(name)}` went" for name in self._seen if name not in names]
        return listed(changes) if changes else None

    def own_gradients(self) -> Any:
        return self._parameters

    @torch.no_grad()
    def gradients(self, given: Any, view: np.ndarray) -> None:
        if isinstance(given, dict):
            found = [given.get(name) for name, _ in self._flat.tensors]
        else:
            found = [parameter.grad for parameter in given]
        if all(gradient is None for gradient in found):
            raise MurmurateError(
                "no parameter has a gradient: call loss.backward() and swarm.step(), and leave out the "
                "optimizer's step() and zero_grad()"
            )
        for gradient, part, (start, end) in zip(found, self._parts, self._held.places):
            if not part.written_elsewhere:
                into = torch.from_numpy(view[start:end]).view(part.shape)
                if gradient is None:
                    into.zero_()
                else:
                    into.copy_(part.values_of(gradient).to_dense(), non_blocking=True)
        self._copies.finish()
        for parameter in self._parameters:
            parameter.grad = None

    def evaluate(self) -> Any:
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                return self._evaluate(self._model)
        finally:
            self._model.train(was_training)
            reshard(self._model)

    def state(self) -> Any:
        optimizer = None if self._optimizer is None else _to_numpy(self._optimizer.state_dict())
        return {"optimizer": optimizer, "buffers": _to_numpy(self._buffers)}

    @torch.no_grad()
    def load_state(self, tree: Any) -> None:
        for name, buffer in self._buffers.items():
            saved = tree["buffers"].get(name)
            if saved is not None:
                buffer.copy_(_to_torch(saved))
        if self._optimizer is not None and tree["optimizer"] is not None:
            meshes = [part.mesh for part in self._parts if part.sharded]
            self._optimizer.load_state_dict(_to_torch(tree["optimizer"], meshes))


def _check(name: str, tensor: Any) -> None:
    """Refuses what cannot be trained, by name."""
    if not tensor.is_floating_point():
        raise MurmurateError(f"{name} is {tensor.dtype}, only real numbers travel")
    if tensor.is_meta or torch.nn.parameter.is_lazy(tensor):
        raise MurmurateError(f"{name} has no values yet: attach after the model is made")
    if tensor.numel() == 0:
        raise MurmurateError(f"{name} of shape {tuple(tensor.shape)} has no values")


def _check_buffer(name: str, buffer: Any) -> None:
    """As `_check`, and constants such as masks."""
    _check(f"buffer `{name}`", buffer)
    if not buffer.float().isfinite().all():
        raise MurmurateError(
            f"buffer `{name}` has infinite values or NaN, which have no mean: register it with persistent=False"
        )


def _to_numpy(tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        if hasattr(tree, "placements"):
            return taken_apart(tree, _to_numpy)
        tensor = tree.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            return {"bfloat16": tensor.view(torch.int16).numpy()}
        return tensor.numpy()
    if isinstance(tree, dict):
        return {key: _to_numpy(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_to_numpy(value) for value in tree)
    return tree


def _to_torch(tree: Any, meshes: Sequence[Any] = ()) -> Any:
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(tree)
    if isinstance(tree, dict):
        if list(tree) == ["bfloat16"]:
            return torch.from_numpy(tree["bfloat16"]).view(torch.bfloat16)
        if is_taken_apart(tree):
            return put_together(tree, _to_torch(tree["local"]), meshes)
        return {key: _to_torch(value, meshes) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_to_torch(value, meshes) for value in tree)
    return tree
