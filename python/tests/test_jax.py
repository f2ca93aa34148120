"""Trees of JAX.  Skipped, with a line, where JAX is not installed."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

try:
    import jax.numpy as jnp
except ImportError:
    jnp = None
    print("skipped: the tests of murmurate.jax, because JAX is not installed")
else:
    from murmurate.jax import JaxAdapter


@unittest.skipIf(jnp is None, "JAX is not installed")
class Jax(unittest.TestCase):
    def test_what_changed_after_the_loop_attached_is_named(self):
        params = {"a": jnp.zeros((2, 2)), "b": [jnp.zeros(3)]}
        adapter = JaxAdapter(params, None, None)
        adapter.install(np.arange(7, dtype=np.float32), 0, 7)
        self.assertIsNone(adapter.changed())
        self.assertEqual(adapter.params["b"][0].tolist(), [4, 5, 6])
        for now, words in [
            ({**params, "c": jnp.zeros(1)}, "`['c']` came"),
            ({"a": params["a"]}, "`['b'][0]` went"),
            ({**params, "a": jnp.zeros(4)}, "`['a']` became float32 of shape (4,)"),
            ({**params, "a": jnp.zeros((2, 2), jnp.bfloat16)}, "`['a']` became bfloat16 of shape (2, 2)"),
        ]:
            adapter.params = now
            self.assertEqual(adapter.changed(), words)


if __name__ == "__main__":
    unittest.main()
