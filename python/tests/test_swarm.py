"""What a training loop says where it cannot go on: one line that says what to do."""

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
        daemon = Daemon(self.folder)
        thread = threading.Thread(target=orders, args=[daemon])
        thread.start()
        self.addCleanup(daemon.close)
        self.addCleanup(thread.join)
        return murmurate.attach({"w": np.zeros((2, 2), np.float32)}, socket=daemon.path, patience=1, **more)

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
