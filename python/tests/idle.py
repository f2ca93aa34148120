"""A trainer that does nothing, for `attach/examples/overhead.rs`:  idle.py VALUES [TENSORS]"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import murmurate  # noqa: E402

values, tensors = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
params = {f"t{i}": np.zeros(values // tensors, np.float32) for i in range(tensors)}
swarm = murmurate.attach(params)
while not swarm.step(samples=1, loss=1.0):
    params["t0"][0] += 1.0  # A loop that changes nothing is ended after some rounds.
