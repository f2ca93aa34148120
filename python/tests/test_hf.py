"""The Trainer of transformers tells the daemon what it trained.  Skipped, with a line, where it is not
installed."""

import math
import os
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from murmurate import _state  # noqa: E402

try:
    import accelerate  # noqa: F401
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments
except ImportError:
    torch = None
    print("skipped: the tests of murmurate.hf, because PyTorch, transformers or accelerate is not installed")
else:
    from murmurate import hf
    from murmurate.torch import TorchAdapter

LENGTH, BATCHES = 8, 3


class Daemon:
    """What `attach` returns, without a daemon: notes what it is told, and ends after some steps."""

    def __init__(self, model, optimizer, evaluate, ends, buffers):
        self.adapter = TorchAdapter(model, optimizer, evaluate, buffers)
        self.told, self.ends, self.over = [], ends, False

    def step(self, samples, loss):
        self.told.append((samples, float(loss)))
        self.over = len(self.told) == self.ends
        return self.over


@unittest.skipIf(torch is None, "PyTorch, transformers or accelerate is not installed")
class Trainer(unittest.TestCase):
    def train(self, ends, rate=1e-2, **more):
        """A trainer after `ends` steps of three batches of two rows, its rows, and its first loss."""
        torch.manual_seed(5)
        rows = np.random.default_rng(5).integers(16, size=(12, LENGTH))
        rows = [{"input_ids": row, "labels": row} for row in rows]
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=16,
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
            )
        )
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder,
                use_cpu=True,
                max_steps=50,
                per_device_train_batch_size=2,
                gradient_accumulation_steps=BATCHES,
                learning_rate=rate,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            )
            model.register_buffer("own", torch.zeros(2))
            trainer = hf.SwarmTrainer(model, arguments, train_dataset=rows, eval_dataset=rows, **more)

            def attach(model, optimizer, evaluate, buffers):
                return Daemon(model, optimizer, evaluate, ends, buffers)

            with mock.patch("murmurate.torch.attach", attach):
                trainer.train()
        return trainer

    def test_the_loss_is_the_mean_over_the_batches_of_a_step(self):
        # Without learning, two steps of six rows each are one pass over the twelve rows.
        trainer = self.train(2, rate=0.0)
        told = trainer.swarm.told
        self.assertEqual([samples for samples, _ in told], [6, 6])
        loss, accuracy, samples = trainer.swarm.adapter.evaluate()
        self.assertEqual((accuracy, samples), (None, 12))
        self.assertAlmostEqual(sum(loss for _, loss in told) / 2, loss, places=5)
        self.assertTrue(math.isclose(loss, math.log(16), rel_tol=0.1), loss)

    def test_buffers_travel_where_the_trainer_says_so(self):
        for more, last in [({}, "lm_head.weight"), ({"buffers": "mean"}, "own")]:
            self.assertEqual(self.train(1, **more).swarm.adapter.tensors()[-1][0], last)

    def test_it_ends_with_the_run(self):
        trainer = self.train(5)
        self.assertEqual((len(trainer.swarm.told), trainer.state.global_step), (5, 5))

    def test_optimizer_and_schedule_come_back(self):
        first, other = self.train(4), self.train(1)
        saved = _state.load(bytearray(b"".join(_state.dump(first.swarm.adapter.state()))))
        other.swarm.adapter.load_state(saved)
        self.assertEqual(other.lr_scheduler.get_last_lr(), first.lr_scheduler.get_last_lr())
        states = [trainer.optimizer.state_dict()["state"].values() for trainer in (other, first)]
        for one, two in zip(*states):
            self.assertEqual(float(one["step"]), 4)
            self.assertTrue(torch.equal(one["exp_avg"], two["exp_avg"]))


if __name__ == "__main__":
    unittest.main()
