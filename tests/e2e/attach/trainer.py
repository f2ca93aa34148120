"""A training loop that harms itself once:  trainer.py DIR INDEX FAULT

FAULT is `none`, or one of `step`, `cut`, `save`, `evaluate` (killed by SIGKILL there), `hang`, `raise`,
`nan`, `sleep` (takes a second for a step), `layout` (trains another model), `late` (is slow in its fifth
round), `score` (its evaluation raises). It harms the daemon with shard INDEX only. Every trainer
writes the inner steps that its optimizer's state has counted to DIR/INDEX.steps, and its parameters to
DIR/INDEX.end.
"""

import os
import signal
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "python"))
import murmurate  # noqa: E402
from murmurate._numpy import NumpyAdapter  # noqa: E402

directory, victim, fault = sys.argv[1], int(sys.argv[2]), sys.argv[3]
index, of = murmurate.shard()
mark = os.path.join(directory, f"{index}.harmed")


def harm(where):
    """Ends this process, once, in the middle of what it does."""
    if where == fault and index == victim and STATE["steps"] >= 25 and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


class Adapter(NumpyAdapter):
    """Dies after half of what it should write or read."""

    def write(self, view):
        view[: len(view) // 2] = 77
        harm("cut")
        super().write(view)

    def evaluate(self):
        harm("evaluate")
        return super().evaluate()

    def state(self):
        harm("save")
        return super().state()


rng = np.random.default_rng(murmurate.seed())
target = rng.normal(size=300).astype(np.float32)
PARAMS = {"a": np.zeros((10, 20), np.float32), "b": np.zeros(100, np.float32)}
STATE = {"steps": 0, "momentum": np.zeros(300, np.float32)}
FLAT = np.random.default_rng([murmurate.seed(), index])


def error():
    return np.concatenate([PARAMS["a"].ravel(), PARAMS["b"]]) - target


def evaluate(_):
    if fault == "score" and index == victim:
        raise KeyError("accuracy")
    return {"loss": float((error() ** 2).mean()), "samples": 300, "largest": np.abs(error()).max()}


if fault == "layout" and index == victim:
    PARAMS["b"] = np.zeros(50, np.float32)
swarm = murmurate.Swarm(Adapter(PARAMS, STATE, evaluate))
while not swarm.over:
    gradient = error() + 0.1 * FLAT.normal(size=300).astype(np.float32)
    harm("step")
    if index == victim and STATE["steps"] == 25 and not os.path.exists(mark):
        if fault == "hang":
            open(mark, "w").close()
            time.sleep(1000)
        if fault == "raise":
            open(mark, "w").close()
            raise ZeroDivisionError("by the test")
    if fault == "late" and index == victim and STATE["steps"] == 45:
        time.sleep(12)
    if fault == "sleep":
        time.sleep(0.03)
    STATE["momentum"] = 0.5 * STATE["momentum"] + gradient
    PARAMS["a"] -= 0.1 * STATE["momentum"][:200].reshape(10, 20)
    PARAMS["b"] -= 0.1 * STATE["momentum"][200:]
    STATE["steps"] += 1
    swarm.step(samples=32, loss=float("nan") if fault == "nan" and index == victim else (gradient**2).mean())
error().tofile(os.path.join(directory, f"{index}.end"))
with open(os.path.join(directory, f"{index}.steps"), "w") as file:
    file.write(str(STATE["steps"]))
