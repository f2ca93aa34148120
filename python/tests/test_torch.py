"""Modules of PyTorch in the flat parameters.  Skipped, with a line, where PyTorch is not installed."""

import contextlib
import gc
import io
import json
import mmap
import os
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from murmurate import MurmurateError, _state  # noqa: E402

try:
    import torch
    from torch import nn
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
except ImportError:
    torch = None
    print("skipped: the tests of murmurate.torch, because PyTorch is not installed")
else:
    from murmurate.torch import TorchAdapter, attach


def flat(adapter):
    view = np.zeros(adapter._flat.places[-1][1], np.float32)
    adapter.write(view)
    return view


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def module(self, **tensors):
        module = nn.Module()
        for name, tensor in tensors.items():
            setattr(module, name, nn.Parameter(tensor))
        return module

    def test_only_what_requires_a_gradient_travels_and_tied_weights_once(self):
        model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 5, bias=False))
        model[2].weight = model[0].weight
        model[1].bias.requires_grad = False
        frozen = model[1].bias.clone()
        adapter = TorchAdapter(model, None, None)
        self.assertEqual(adapter.tensors(), [("0.weight", (5, 3)), ("1.weight", (3, 3))])
        adapter.install(np.arange(24, dtype=np.float32), 0, 24)
        self.assertEqual(model[2].weight.flatten().tolist(), list(range(15)))
        self.assertTrue(torch.equal(model[1].bias, frozen))

    def test_ranges_cut_through_tensors_of_any_strides(self):
        model = self.module(
            scale=torch.tensor(2.0),
            turned=torch.zeros(3, 2).t(),
            pixels=torch.zeros(1, 2, 2, 2).to(memory_format=torch.channels_last),
        )
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            with self.subTest(dtype=dtype):
                adapter = TorchAdapter(model.to(dtype), None, None)
                adapter.install(np.zeros(15, np.float32), 0, 15)
                adapter.install(np.arange(15, dtype=np.float32), 0, 9)
                self.assertEqual(flat(adapter).tolist(), [*range(9)] + 6 * [0])
                self.assertEqual(model.scale.item(), 0)
                self.assertEqual(model.turned.tolist(), [[1, 2, 3], [4, 5, 6]])
                self.assertEqual(model.pixels.flatten().tolist(), [7, 8] + 6 * [0])

    def test_masters_keep_what_a_short_type_cannot(self):
        model = self.module(w=torch.ones(4, dtype=torch.bfloat16))
        adapter = TorchAdapter(model, None, None)
        fine = np.array([1.001, 1.002, 1.003, 1.0035], np.float32)
        adapter.install(fine, 0, 4)
        self.assertEqual(model.w.tolist(), 4 * [1.0])
        np.testing.assert_array_equal(flat(adapter), fine)
        with torch.no_grad():
            model.w += 0.5
        np.testing.assert_array_equal(flat(adapter), fine + np.float32(0.5))

    def test_a_fragment_leaves_what_training_changed_in_the_rest_of_the_tensor(self):
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype=dtype):
                model = self.module(w=torch.zeros(4, dtype=dtype))
                adapter = TorchAdapter(model, None, None)
                with torch.no_grad():
                    model.w += 0.25
                adapter.install(np.full(4, 3, np.float32), 0, 2)
                self.assertEqual(model.w.tolist(), [3, 3, 0.25, 0.25])
                self.assertEqual(flat(adapter).tolist(), [3, 3, 0.25, 0.25])

    def test_gradients_are_taken_and_cleared(self):
        model = nn.Sequential(nn.Embedding(4, 2, sparse=True), nn.Linear(2, 1).to(torch.float32))
        unused = nn.Parameter(torch.ones(2))
        model.register_parameter("unused", unused)
        adapter = TorchAdapter(model, None, None)
        self.assertEqual([name for name, _ in adapter.tensors()][0], "unused")
        model(torch.tensor([1])).sum().backward()
        weight = model[1].weight.detach().flatten().cpu()
        view = np.ones(13, np.float32)
        adapter.gradients(adapter.own_gradients(), view)
        self.assertEqual(view[:4].tolist(), [0, 0, 0, 0])
        np.testing.assert_array_equal(view[4:6], weight)
        self.assertEqual(view[12], 1)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        with self.assertRaisesRegex(MurmurateError, "no parameter has a gradient"):
            adapter.gradients(adapter.own_gradients(), view)
        given = {"1.bias": torch.tensor([7.0])}
        adapter.gradients(given, view)
        self.assertEqual(view.tolist(), [0] * 12 + [7])

    def test_buffers_that_are_averaged_lie_behind_the_parameters(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            with self.subTest(dtype=dtype):
                model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1, bias=False)).to(dtype)
                adapter = TorchAdapter(model, None, None, "mean")
                names = ["0.weight", "0.bias", "1.weight", "0.running_mean", "0.running_var"]
                shapes = [(2,), (2,), (1, 2), (2,), (2,)]
                self.assertEqual(adapter.tensors(), list(zip(names, shapes)))
                model(torch.tensor([[1.0, 2.0], [3.0, 6.0]], dtype=dtype))
                # A tenth of the batch's mean and variance, and nine of what they were.
                np.testing.assert_allclose(flat(adapter)[6:], [0.2, 0.4, 1.1, 1.7], rtol=1e-2)
                adapter.install(np.arange(10, dtype=np.float32), 0, 7)
                adapter.install(np.arange(10, dtype=np.float32), 7, 10)
                self.assertEqual(model[0].running_mean.tolist(), [6, 7])
                self.assertEqual(model[0].running_var.tolist(), [8, 9])
                self.assertEqual((flat(adapter).tolist(), model[0].running_var.dtype), ([*range(10)], dtype))
                self.assertEqual(adapter.own_buffers(), [])
                self.assertEqual(list(adapter.state()["buffers"]), ["0.num_batches_tracked"])
                self.assertEqual(int(model[0].num_batches_tracked), 1)

    def test_a_running_variance_is_never_negative(self):
        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype=dtype):
                model = nn.BatchNorm1d(2).to(dtype)
                model.register_parameter("scale_of_running_var", nn.Parameter(torch.ones(1, dtype=dtype)))
                adapter = TorchAdapter(model, None, None, "mean")
                agreed = np.array([-1, -1, -1, -1, -1, -2, -2, -0.5, 3], np.float32)
                adapter.install(agreed, 0, 8)
                self.assertEqual(model.running_var.tolist(), [0, 1])
                adapter.install(agreed, 0, 9)
                self.assertEqual(model.running_var.tolist(), [0, 3])
                self.assertEqual(flat(adapter).tolist(), [-1, -1, -1, -1, -1, -2, -2, 0, 3])

    def test_a_run_of_gradients_averages_no_buffers(self):
        self.assertTrue(TorchAdapter(nn.BatchNorm1d(2), None, None).hands_gradients)
        self.assertFalse(TorchAdapter(nn.BatchNorm1d(2), None, None, "mean").hands_gradients)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "run.json"), "w") as file:
                json.dump({"mode": "gradients"}, file)
            with self.assertRaisesRegex(MurmurateError, "buffers have none: attach with buffers=\"local\""):
                attach(nn.BatchNorm1d(2), buffers="mean", socket=os.path.join(folder, "socket"), patience=0)

    def test_the_line_names_what_stays(self):
        lines = []
        for choice in ("local", "mean"):
            info = mock.patch("murmurate.torch.run_info", lambda *_: {"mode": "deltas"})
            with contextlib.redirect_stderr(io.StringIO()) as said, info, mock.patch("murmurate.torch.Swarm"):
                attach(nn.BatchNorm1d(2), buffers=choice)
            lines.append(said.getvalue())
        self.assertIn("buffers do not travel (`running_mean`, `running_var`): ", lines[0])
        self.assertIn('; buffers="mean" averages them', lines[0])
        self.assertEqual(lines[1], "")

    def test_buffers_without_a_mean_are_named(self):
        for buffer, words in [
            (torch.tensor([1.0, -torch.inf]), "`b` has infinite values or NaN.* with persistent=False"),
            (torch.zeros(0, 3), r"`b` of shape \(0, 3\) has no values"),
            (torch.zeros(2, device="meta"), "`b` has no values yet"),
        ]:
            model = nn.Linear(1, 1)
            model.register_buffer("b", buffer)
            self.assertEqual(TorchAdapter(model, None, None).own_buffers(), ["`b`"])
            with self.assertRaisesRegex(MurmurateError, words):
                TorchAdapter(model, None, None, "mean")
            model.register_buffer("b", buffer, persistent=False)
            self.assertEqual(len(TorchAdapter(model, None, None, "mean").tensors()), 2)
        for wrong in ("sum", True, None):
            with self.assertRaisesRegex(MurmurateError, f'buffers must be "local" or "mean", not {wrong!r}'):
                TorchAdapter(model, None, None, wrong)

    def test_a_buffer_that_travels_and_was_replaced_is_named(self):
        def assign(model):
            model.running_mean = model.running_mean + 1

        def remove(model):
            model.running_var = None

        def grow(model):
            model.running_mean.resize_(3)

        for change, words in [
            (assign, "`running_mean` became another buffer"),
            (remove, "`running_var` went"),
            (grow, "the shape of `running_mean` changed to (3,)"),
        ]:
            with self.subTest(change=change.__name__):
                for choice, expected in [("local", None), ("mean", words)]:
                    model = nn.BatchNorm1d(2)
                    adapter = TorchAdapter(model, None, None, choice)
                    model(torch.rand(3, 2))
                    # What stays may come and change.
                    model.register_buffer("other", torch.ones(1, requires_grad=True))
                    model.num_batches_tracked = model.num_batches_tracked + 1
                    self.assertIsNone(adapter.changed())
                    change(model)
                    self.assertEqual(adapter.changed(), expected)

    def test_optimizer_and_buffers_go_on_after_a_checkpoint(self):
        both = [(dtype, buffers) for dtype in (torch.float32, torch.bfloat16) for buffers in ("local", "mean")]
        for dtype, buffers in both:
            with self.subTest(dtype=dtype, buffers=buffers):
                model, twin = (self.trained(dtype) for _ in range(2))
                steps(*model, 5)
                steps(*twin, 3)
                saved = b"".join(_state.dump(TorchAdapter(*twin, None, buffers).state()))
                values = flat(TorchAdapter(*twin, None, buffers))
                again = self.trained(dtype)
                adapter = TorchAdapter(*again, None, buffers)
                adapter.install(values, 0, len(values))
                adapter.load_state(_state.load(bytearray(saved)))
                self.assertEqual(int(again[0][1].num_batches_tracked), 3)
                steps(*again, 2)
                for one, other in zip(model[0].state_dict().values(), again[0].state_dict().values()):
                    self.assertTrue(torch.equal(one, other))

    def trained(self, dtype):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1)).to(dtype)
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def test_what_changed_after_the_loop_attached_is_named(self):
        def unfreeze(model):
            model[1].bias.requires_grad = True

        def replace(model):
            model[1].weight = nn.Parameter(torch.ones(3, 3))

        def untie(model):
            model[2].weight = nn.Parameter(model[2].weight.detach().clone())

        def cast(model):
            model[1].to(torch.bfloat16)

        def grow(model):
            model[0].weight.data = torch.zeros(6, 3)

        def add(model):
            model.append(nn.Linear(5, 1, bias=False))

        def remove(model):
            del model[2]

        for change, words in [
            (unfreeze, "`1.bias` came to require a gradient"),
            (replace, "`1.weight` became another parameter"),
            (untie, "`2.weight` became another parameter"),
            (cast, "`1.weight` became torch.bfloat16"),
            (grow, "the shape of `0.weight` changed to (6, 3), the shape of `2.weight` changed to (6, 3)"),
            (add, "`3.weight` came to require a gradient"),
            (remove, "`2.weight` went"),
        ]:
            with self.subTest(change=change.__name__):
                model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 5, bias=False))
                model[2].weight = model[0].weight
                model[1].bias.requires_grad = False
                adapter = TorchAdapter(model, None, None)
                model[1].bias = nn.Parameter(torch.ones(3), requires_grad=False)
                model[1].weight.requires_grad = False
                adapter.install(np.arange(24, dtype=np.float32), 0, 24)
                self.assertIsNone(adapter.changed())
                change(model)
                self.assertEqual(adapter.changed(), words)

    def test_what_cannot_be_trained_is_named(self):
        whole = nn.Parameter(torch.ones(2), requires_grad=False)
        for module, words in [
            (self.module(c=torch.ones(2, dtype=torch.complex64)), "`c` is torch.complex64"),
            (self.module(e=torch.zeros(0, 3)), r"`e` of shape \(0, 3\) has no values"),
            (nn.Linear(2, 2, device="meta"), "`weight` has no values yet"),
            (nn.LazyLinear(2), "`weight` has no values yet"),
            (nn.ParameterList([whole]), "no parameter of the model requires a gradient"),
        ]:
            with self.assertRaisesRegex(MurmurateError, words):
                TorchAdapter(module, None, None)

    def test_names_are_those_without_wrappers(self):
        plain = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        names = TorchAdapter(plain, None, None).tensors()
        buffers = list(TorchAdapter(plain, None, None)._buffers)
        self.assertEqual(buffers[0], "1.running_mean")
        averaged = TorchAdapter(plain, None, None, "mean").tensors()
        self.assertEqual(averaged, [*names, ("1.running_mean", (3,)), ("1.running_var", (3,))])
        for wrap in (lambda model: torch.compile(model, backend="eager"), nn.DataParallel, checkpoint_wrapper):
            wrapped = wrap(plain)
            adapter = TorchAdapter(wrapped, None, None)
            self.assertEqual((adapter.tensors(), list(adapter._buffers)), (names, buffers))
            self.assertEqual(adapter.own_buffers(), ["`1.running_mean`", "`1.running_var`"])
            adapter = TorchAdapter(wrapped, None, None, "mean")
            self.assertEqual((adapter.tensors(), adapter.changed()), (averaged, None))
            wrapped(torch.rand(4, 2))
            expected = torch.cat([plain[1].running_mean, plain[1].running_var]).tolist()
            self.assertEqual((flat(adapter)[-6:].tolist(), adapter.changed()), (expected, None))

    def test_evaluation_restores_training_mode(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        seen = []

        def evaluate(model):
            seen.append((model.training, torch.is_grad_enabled()))
            return 1.0, None, 1

        self.assertEqual(TorchAdapter(model, None, evaluate).evaluate(), (1.0, None, 1))
        self.assertEqual((seen, model.training), ([(False, False)], True))


@unittest.skipUnless(torch is not None and torch.cuda.is_available(), "there is no CUDA device")
class OnCuda(Torch):
    """All of that with parameters on a CUDA device."""

    def setUp(self):
        super().setUp()
        torch.set_default_device("cuda")
        self.addCleanup(torch.set_default_device, None)

    def test_shared_memory_is_pinned_and_again_when_the_daemon_is_back(self):
        model = self.module(w=torch.rand(300, 70), turned=torch.rand(5, 9).t())
        adapter = TorchAdapter(model, None, None)
        for _ in range(2):
            memory = np.frombuffer(mmap.mmap(-1, 8 * 21_045), np.float32).reshape(2, 21_045)
            adapter.mapped(memory)
            self.assertTrue(torch.from_numpy(memory).is_pinned())
            adapter.write(memory[1])
            expected = torch.cat([model.w.flatten(), model.turned.flatten()])
            self.assertTrue(torch.equal(torch.from_numpy(memory[1]), expected.cpu()))
            memory[0] = 2 * memory[1]
            adapter.install(memory[0], 0, 21_045)
            self.assertTrue(torch.equal(model.w.flatten(), 2 * expected[:21_000]))

    def test_memory_is_no_longer_pinned_when_its_loop_has_ended(self):
        memory = np.frombuffer(mmap.mmap(-1, 8 * 300), np.float32).reshape(2, 300)
        for _ in range(2):
            adapter = TorchAdapter(self.module(w=torch.rand(300)), None, None)
            adapter.mapped(memory)
            self.assertTrue(torch.from_numpy(memory).is_pinned())
            del adapter
            gc.collect()
            self.assertFalse(torch.from_numpy(memory).is_pinned())

    def test_memory_that_cannot_be_pinned_is_copied_all_the_same(self):
        adapter = TorchAdapter(self.module(w=torch.rand(300)), None, None)
        memory = np.zeros((2, 300), np.float32)
        adapter.mapped(memory)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            # CUDA pins no memory twice.
            TorchAdapter(self.module(w=torch.rand(300)), None, None).mapped(memory)
        self.assertTrue(torch.equal(torch.ones(3) + 1, torch.full((3,), 2.0)))
        self.assertIn("could not be pinned", said.getvalue())
        adapter.write(memory[1])
        self.assertTrue(memory[1].any())


def steps(model, optimizer, count):
    """Steps on data that depends only on how many batches the model has seen."""
    for _ in range(count):
        generator = torch.Generator("cpu").manual_seed(int(model[1].num_batches_tracked))
        data = torch.randn(8, 4, generator=generator, device="cpu").to(model[0].weight)
        model(data).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    unittest.main()
