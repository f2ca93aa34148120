"""State goes into bytes and comes back, without pickle.  Run: python -m unittest discover python/tests"""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from murmurate import MurmurateError, _state, attach  # noqa: E402
from murmurate._numpy import Flat, NumpyAdapter  # noqa: E402


class State(unittest.TestCase):
    def test_a_tree_comes_back_to_the_bit(self):
        tree = {
            "step": 7,
            "rate": 0.1,
            "far": float("inf"),
            "none": None,
            0: [np.arange(6, dtype=np.float32).reshape(2, 3), (True, "text")],
            "scalar": np.float64(0.3),
            "empty": np.zeros((0, 4), np.int64),
        }
        back = _state.load(b"".join(_state.dump(tree)))
        self.assertEqual(list(back), list(tree))
        self.assertEqual((back["step"], back["rate"], back["far"]), (7, 0.1, float("inf")))
        np.testing.assert_array_equal(back[0][0], tree[0][0])
        self.assertEqual(back[0][1], (True, "text"))
        self.assertEqual(back["scalar"], np.float64(0.3))
        self.assertEqual(back["empty"].shape, (0, 4))

    def test_what_is_no_data_is_refused(self):
        with self.assertRaisesRegex(TypeError, "a function cannot be kept"):
            _state.dump({"f": lambda: 0})
        with self.assertRaisesRegex(TypeError, "Python objects"):
            _state.dump(np.array([object()]))
        with self.assertRaisesRegex(ValueError, "not of this package"):
            _state.load(b"x" * 40)


class Numpy(unittest.TestCase):
    def test_ranges_cut_through_tensors(self):
        flat = Flat([("a", (2, 3)), ("b", ()), ("c", (4,))])
        self.assertEqual(list(flat.pieces(5, 9)), [(0, 5, 6, 5), (1, 0, 1, 6), (2, 0, 2, 7)])
        params = {"a": np.zeros((3, 2), np.float32).T, "b": np.zeros((), np.float32)}
        adapter = NumpyAdapter(params, None, None)
        view = np.arange(7, dtype=np.float32)
        adapter.install(view, 4, 7)
        self.assertEqual(params["a"].ravel().tolist(), [0, 0, 0, 0, 4, 5])
        self.assertEqual(params["b"], 6)
        again = np.zeros(7, np.float32)
        adapter.write(again)
        self.assertEqual(again.tolist(), [0, 0, 0, 0, 4, 5, 6])

    def test_parameters_that_cannot_be_are_named(self):
        for array, words in [
            (np.zeros(3), "`w` is float64, only float32"),
            (np.zeros((0, 3), np.float32), r"`w` of shape \(0, 3\)"),
            ([1.0], "`w` is a list"),
        ]:
            with self.assertRaisesRegex(MurmurateError, words):
                attach({"w": array}, socket="/nowhere", patience=0)

    def test_without_a_daemon_there_is_a_hint(self):
        with self.assertRaisesRegex(MurmurateError, "murmurate run --trainer attach"):
            attach({"w": np.zeros(1, np.float32)}, socket="/nowhere", patience=0)


if __name__ == "__main__":
    unittest.main()
