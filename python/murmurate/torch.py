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

Parameters that require gradients travel, in the order of `named_parameters()`, on any device. Those of
another type than float32 have float32 masters here, because small changes would vanish in bfloat16.
Buffers, such as the running means of batch normalisation, stay with each daemon.
"""

import numpy as np
import torch

from ._errors import MurmurateError
from ._numpy import Flat
from ._swarm import PATIENCE, Swarm, seed, shard

__all__ = ["attach", "seed", "shard"]


def attach(model, optimizer=None, evaluate=None, *, socket=None, patience=PATIENCE):
    """Attaches a module to the daemon; see `murmurate.attach`.

    optimizer: one of torch.optim, or anything with `state_dict()` and `load_state_dict()`; checkpoints keep
        its state. Leave it out where the run exchanges gradients.
    evaluate: a function of `model` that returns loss, accuracy or None, samples. It is called in
        evaluation mode, without gradients.
    """
    return Swarm(TorchAdapter(model, optimizer, evaluate), socket=socket, patience=patience)


class TorchAdapter:
    """The parameters of a module that require gradients."""

    def __init__(self, model, optimizer, evaluate):
        self._model, self._optimizer, self._evaluate = model, optimizer, evaluate
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        for name, parameter in named:
            if not parameter.is_floating_point():
                raise MurmurateError(f"parameter `{name}` is {parameter.dtype}, only real numbers travel")
            if parameter.is_meta:
                raise MurmurateError(f"parameter `{name}` has no values yet: attach after the model is made")
        if not named:
            raise MurmurateError("no parameter of the model requires a gradient")
        self._parameters = [parameter for _, parameter in named]
        self._flat = Flat([(name, parameter.shape) for name, parameter in named])
        self._masters = {
            index: parameter.detach().float().cpu().clone()
            for index, parameter in enumerate(self._parameters)
            if parameter.dtype != torch.float32
        }
        self.evaluates = evaluate is not None
        self.has_state = optimizer is not None
        self.hands_gradients = optimizer is None

    def tensors(self):
        return self._flat.tensors

    @torch.no_grad()
    def write(self, view):
        for index, (start, end) in enumerate(self._flat.places):
            parameter = self._parameters[index].detach()
            into = torch.from_numpy(view[start:end]).view(parameter.shape)
            master = self._masters.get(index)
            if master is None:
                into.copy_(parameter)
                continue
            # What training has changed since the master was rounded.
            rounded = master.to(parameter.dtype).float()
            master += parameter.float().cpu() - rounded
            into.copy_(master)

    @torch.no_grad()
    def install(self, view, start, end):
        for index, low, high, place in self._flat.pieces(start, end):
            parameter = self._parameters[index].detach()
            values = torch.from_numpy(view[place : place + high - low])
            master = self._masters.get(index)
            if master is not None:
                master.view(-1)[low:high] = values
                parameter.copy_(master)
            elif high - low == parameter.numel():
                parameter.copy_(values.view(parameter.shape))
            else:
                flat = parameter.reshape(-1)
                flat[low:high] = values.to(parameter.device)
                if not parameter.is_contiguous():
                    parameter.copy_(flat.view(parameter.shape))

    def own_gradients(self):
        return self._parameters

    @torch.no_grad()
    def gradients(self, given, view):
        for parameter, (start, end) in zip(given, self._flat.places):
            into = torch.from_numpy(view[start:end]).view(parameter.shape)
            if parameter.grad is None:
                into.zero_()
            else:
                into.copy_(parameter.grad)
                parameter.grad = None

    def evaluate(self):
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                return self._evaluate(self._model)
        finally:
            self._model.train(was_training)

    def state(self):
        return _to_numpy(self._optimizer.state_dict())

    def load_state(self, tree):
        self._optimizer.load_state_dict(_to_torch(tree))


def _to_numpy(tree):
    if isinstance(tree, torch.Tensor):
        tensor = tree.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            return {"bfloat16": tensor.view(torch.int16).numpy()}
        return tensor.numpy()
    if isinstance(tree, dict):
        return {key: _to_numpy(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_to_numpy(value) for value in tree)
    return tree


def _to_torch(tree):
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(tree)
    if isinstance(tree, dict):
        if list(tree) == ["bfloat16"]:
            return torch.from_numpy(tree["bfloat16"]).view(torch.bfloat16)
        return {key: _to_torch(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_to_torch(value) for value in tree)
    return tree
