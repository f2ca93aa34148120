"""What a training loop says where it cannot go on: one line that says what to do."""

import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.dirname(__file__))
import murmurate  # noqa: E402
from daemon import Daemon  # noqa: E402
from murmurate import MurmurateError, NoDaemon, Refused  # noqa: E402


class Swarm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def attach(self, orders, **more):
        """A loop of one array, attached to a daemon that performs `orders` in a thread."""
        daemon = Daemon(tempfile.mkdtemp(dir=self.folder))
        thread = threading.Thread(target=orders, args=[daemon])
        thread.start()
        self.addCleanup(daemon.close)
        self.addCleanup(thread.join)
        self.params = {"w": np.zeros((2, 2), np.float32)}
        return murmurate.attach(self.params, socket=daemon.path, patience=1, **more)

    def test_what_is_no_number_is_named(self):
        def orders(daemon):
            daemon.attach()
            daemon.tell("go")

        swarm = self.attach(orders)
        for loss, words in [("bad", "a str"), (np.zeros(3), r"a ndarray of shape \(3,\)")]:
            with self.assertRaisesRegex(MurmurateError, f"give the mean loss as one number, not.*{words}"):
                swarm.step(samples=1, loss=loss)
        with self.assertRaisesRegex(MurmurateError, r"step\(samples=0\): .* at least 1"):
            swarm.step(samples=0, loss=1.0)

    def scores(self, returned):
        """What the daemon is told of what `evaluate` returns, and what is said beside it."""
        told = []

        def orders(daemon):
            daemon.attach()
            told.extend(daemon.ask("evaluate") for _ in range(2))
            daemon.tell("go")

        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.attach(orders, evaluate=lambda _: returned)
        return told, said.getvalue()

    def test_an_evaluation_may_be_a_dict(self):
        told, said = self.scores({"samples": 4, "loss": np.float32(0.5), "f1": 0.25})
        score = {"t": "score", "loss": 0.5, "accuracy": None, "samples": 4, "named": {"f1": 0.25}}
        self.assertEqual((told, said), (2 * [score], ""))
        told, said = self.scores([1, 0.75, 9])
        self.assertEqual((told[0]["accuracy"], said), (0.75, ""))

    def test_a_further_number_that_cannot_be_shown_is_left_out_and_named_once(self):
        for name, value, words in [
            ("auc", float("nan"), "'auc', which is nan"),
            ("auc", np.zeros(2), "'auc', which is a ndarray and not one number"),
            ("auc", "0.5", "'auc', which is a str and not one number"),
            ("n" * 65, 1.0, f"'{'n' * 64}', which is no name of 1 to 64 printable characters"),
            (7, 1.0, "'7', which is no name"),
            ("a\nb", 1.0, r"'a\nb', which is no name"),
        ]:
            told, said = self.scores({"loss": 1.0, "samples": 4, name: value, "f1": 0.5})
            self.assertEqual([score["named"] for score in told], 2 * [{"f1": 0.5}])
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(words, said)
        told, said = self.scores({"loss": 1.0, "samples": 4, **{f"f{n}": n for n in range(17)}})
        self.assertEqual(list(told[0]["named"]), [f"f{n}" for n in range(16)])
        self.assertIn("'f16', which is beyond 16 further numbers: it is left out", said)

    def test_another_evaluation_is_named(self):
        for returned, words in [
            ({"loss": 1.0}, "a dict of 'loss': float"),
            ((1.0, 2), r"a tuple of \(float, int\)"),
            (("x", None, 3), r"a tuple of \(str, NoneType, int\)"),
            (1.0, "a float"),
            (None, "None"),
        ]:
            with self.subTest(returned=returned), self.assertRaisesRegex(
                TypeError, rf"must return \(loss, accuracy or None, samples\), or a dict .* it returned {words}$"
            ):
                self.attach(lambda daemon: (daemon.attach(), daemon.ask("evaluate")), evaluate=lambda _: returned)

    def test_parameters_that_came_or_went_are_named(self):
        def orders(daemon):
            daemon.attach()
            daemon.tell("go")

        def add(params):
            params["b"] = np.zeros(1, np.float32)

        def swap(params):
            params["x"] = params.pop("w")

        def cast(params):
            params["w"] = params["w"].astype(np.float16)

        def grow(params):
            params["w"] = np.zeros(9)

        for change, words in [
            (add, "`b` came since"),
            (swap, "`x` came and `w` went since"),
            (cast, r"`w` became float16 of shape \(2, 2\) since"),
            (grow, r"`w` became float64 of shape \(9,\) since"),
        ]:
            swarm = self.attach(orders)
            change(self.params)
            with self.assertRaisesRegex(MurmurateError, f"{words} this loop attached: attach again"):
                swarm.step(samples=1, loss=1.0)

    def test_a_loop_that_asks_for_its_part_before_it_can_be_known_is_told_so(self):
        def says(index, of, dealt):
            with open(os.path.join(self.folder, "run.json"), "w", encoding="utf-8") as file:
                json.dump({"shard": index, "shards": of, "dealt": dealt}, file)

        socket = os.path.join(self.folder, "socket")
        says(1, 3, False)
        self.assertEqual(murmurate.shard(socket), (1, 3))
        says(0, 1, True)
        self.assertEqual(murmurate.shard(socket, whole=True), (0, 1))
        with self.assertRaisesRegex(MurmurateError, "ask `swarm.shard` in every .* set `shards.index`"):
            murmurate.shard(socket)

    def test_a_loop_that_never_asks_for_its_part_of_the_data_is_told_so_once(self):
        def orders(daemon):
            daemon.attach()
            daemon.tell("deal", shard={"index": 1, "of": 3})
            daemon.steps(2)
            daemon.tell("stop")

        for asks, lines in [(False, 1), (True, 0)]:
            with mock.patch("murmurate._swarm._asked", False), contextlib.redirect_stderr(io.StringIO()) as said:
                swarm = self.attach(orders)
                if asks:
                    self.assertEqual(swarm.shard, (1, 3))
                while not swarm.step(samples=1, loss=1.0):
                    pass
            self.assertEqual(said.getvalue().count("never asked for its part of the data, one of 3"), lines)

    def test_a_supervised_loop_ends_where_its_daemon_has_ended(self):
        with mock.patch.dict(os.environ, MURMURATE_SUPERVISED="1"), self.assertRaises(NoDaemon):
            murmurate.attach({"w": np.zeros(3, np.float32)}, socket=self.folder, patience=600)
        with mock.patch.dict(os.environ, MURMURATE_SUPERVISED="1"), self.assertRaises(NoDaemon):
            murmurate.seed(self.folder)

    def test_a_daemon_that_closes_at_once_is_told(self):
        def orders(daemon):
            daemon._socket, _ = daemon._listener.accept()
            daemon.receive()
            daemon._socket.close()

        with self.assertRaisesRegex(NoDaemon, "closed the connection while this loop attached"):
            self.attach(orders)

    def test_a_socket_of_another_user_is_told(self):
        path = os.path.join(self.folder, "socket")
        with mock.patch("socket.socket.connect", side_effect=PermissionError):
            with self.assertRaisesRegex(Refused, "belongs to another user: start the daemon and its"):
                murmurate.attach({"w": np.zeros(3, np.float32)}, socket=path)
        with mock.patch("builtins.open", side_effect=PermissionError):
            with self.assertRaisesRegex(Refused, "belongs to another user"):
                murmurate.seed(path)

    def test_without_a_daemon_it_says_how_to_start_one(self):
        with self.assertRaisesRegex(NoDaemon, "start one with `murmurate run --trainer attach`"):
            murmurate.attach({"w": np.zeros(3, np.float32)}, socket=self.folder, patience=0)

    def test_errors_have_the_name_that_users_import(self):
        for error in (MurmurateError, NoDaemon, Refused):
            self.assertIs(getattr(sys.modules[error.__module__], error.__name__), error)
            self.assertEqual(error.__module__, "murmurate")


if __name__ == "__main__":
    unittest.main()
