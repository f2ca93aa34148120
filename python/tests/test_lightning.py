"""The Trainer of Lightning tells the daemon what it trained.  Skipped, with a line, where Lightning is not
installed."""

import logging
import math
import os
import sys
import tempfile
import unittest
import warnings
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from murmurate import MurmurateError, _state  # noqa: E402

try:
    import torch

    try:
        import lightning.pytorch as L
    except ImportError:
        import pytorch_lightning as L
except ImportError:
    L = None
    print("skipped: the tests of murmurate.lightning, because Lightning is not installed")
else:
    from murmurate import lightning as ml
    from murmurate.torch import TorchAdapter

    logging.getLogger(L.__name__).setLevel(logging.ERROR)

ROWS, CLASSES = 10, 4
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Daemon:
    """What `attach` returns, without a daemon: notes what it is told, and ends after some steps."""

    def __init__(self, adapter, ends):
        self.adapter, self.ends = adapter, ends
        self.told, self.over = [], False

    def step(self, samples, loss):
        assert not self.over, "a step after the end"
        self.told.append((samples, float(loss)))
        self.over = len(self.told) == self.ends
        return self.over


def module(rate=0.1, loss=True):
    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, CLASSES)
            self.register_buffer("own", torch.zeros(2))

        def score(self, x, y):
            return torch.nn.functional.cross_entropy(self.layer(x), y)

        def training_step(self, batch):
            return self.score(*batch)

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=rate)
            return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]

    class Manual(Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch):
            optimizer = self.optimizers()
            found = self.score(*batch)
            self.manual_backward(found)
            optimizer.step()
            optimizer.zero_grad()
            return found if loss == "manual" else None

    torch.manual_seed(5)
    return Module() if loss is True else Manual()


@unittest.skipIf(L is None, "Lightning is not installed")
class Trainer(unittest.TestCase):
    def train(self, ends, accumulate=1, rate=0.1, loss=True, buffers="local", **limits):
        """A trained module, its Trainer, and what the daemon was told. Batches of four, four and two rows."""
        model = module(rate, loss)
        data = torch.utils.data.TensorDataset(torch.randn(ROWS, 3), torch.arange(ROWS) % CLASSES)

        def evaluate(seen):
            assert seen is model and not seen.training and not torch.is_grad_enabled()
            return seen.score(*data.tensors), None, ROWS

        def attach(model, optimizer, evaluate, buffers, **_):
            return Daemon(TorchAdapter(model, optimizer, evaluate, buffers), ends)

        callback = ml.SwarmCallback(evaluate, buffers=buffers)
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            if accumulate > 1:
                limits["accumulate_grad_batches"] = accumulate
            limits.setdefault("max_epochs", 50)
            trainer = L.Trainer(callbacks=[callback], default_root_dir=folder, **limits, **QUIET)
            with mock.patch("murmurate.torch.attach", attach):
                trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4))
        return model, trainer, callback

    def test_it_tells_every_step_and_ends_with_the_run(self):
        _, trainer, callback = self.train(5)
        self.assertEqual([samples for samples, _ in callback.swarm.told], [4, 4, 2, 4, 4])
        self.assertEqual((trainer.global_step, trainer.should_stop), (5, True))

    def test_buffers_travel_where_the_callback_says_so(self):
        for buffers, last in [("local", "layer.bias"), ("mean", "own")]:
            _, _, callback = self.train(1, buffers=buffers)
            self.assertEqual(callback.swarm.adapter.tensors()[-1][0], last)

    def test_accumulated_batches_are_one_step_with_their_mean_loss(self):
        # Without learning, a pass over the ten rows is two steps: two batches, and the rest.
        _, trainer, callback = self.train(2, accumulate=2, rate=0.0)
        told = callback.swarm.told
        self.assertEqual([samples for samples, _ in told], [8, 2])
        loss, accuracy, samples = callback.swarm.adapter.evaluate()
        self.assertEqual((accuracy, samples, trainer.global_step), (None, ROWS, 2))
        self.assertAlmostEqual((8 * told[0][1] + 2 * told[1][1]) / 10, float(loss), places=5)

    def test_manual_optimization_needs_a_loss(self):
        _, _, callback = self.train(3, loss="manual", rate=0.0)
        self.assertEqual([samples for samples, _ in callback.swarm.told], [4, 4, 2])
        self.assertTrue(all(math.isfinite(loss) for _, loss in callback.swarm.told))
        with self.assertRaisesRegex(MurmurateError, "must return the loss"):
            self.train(3, loss=None)

    def test_optimizer_and_schedule_come_back(self):
        # The schedule moves at the end of a pass.
        _, first, callback = self.train(7)
        _, other, fresh = self.train(1)
        saved = _state.load(bytearray(b"".join(_state.dump(callback.swarm.adapter.state()))))
        fresh.swarm.adapter.load_state(saved)
        rates = [trainer.lr_scheduler_configs[0].scheduler.get_last_lr() for trainer in (other, first)]
        self.assertEqual(rates[0], rates[1])
        self.assertEqual(rates[0], [0.1 * 0.25])
        states = [trainer.optimizers[0].state_dict()["state"].values() for trainer in (other, first)]
        for one, two in zip(*states):
            self.assertEqual(float(one["step"]), 7)
            self.assertTrue(torch.equal(one["exp_avg"], two["exp_avg"]))

    def test_a_limit_that_comes_first_is_told(self):
        with mock.patch("sys.stderr") as stderr:
            self.train(50, max_epochs=1)
        text = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertIn("give more max_epochs or max_steps", text)


if __name__ == "__main__":
    unittest.main()
