"""Logs the rounds of a daemon to MLflow or Weights & Biases.

    python -m murmurate.track --mlflow http://127.0.0.1:5000 murmurate-state
    python -m murmurate.track --wandb my-project http://127.0.0.1:9100
    python -m murmurate.track --mlflow ./mlruns --once metrics/1f0c9a2e

It runs beside the daemon, on any machine that reaches it, and changes nothing there. The daemon is named by
its URL, its directory, or its folder below `daemon.metrics_dir`. Ctrl+C ends it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Sequence

from ._errors import MurmurateError
from ._rounds import FileRounds, HttpRounds, source
from ._trackers import Mlflow, Wandb

__all__ = ["Mlflow", "Wandb", "follow", "source"]

# Seconds between two looks at a daemon.
INTERVAL_S = 1.0


def follow(
    rounds: HttpRounds | FileRounds,
    trackers: Sequence[Mlflow | Wandb],
    once: bool = False,
    interval: float = INTERVAL_S,
) -> int:
    """Logs the rounds of a source to all trackers until it has ended, or once. Returns how many."""
    count = 0
    try:
        while True:
            new = rounds.take()
            for tracker in trackers:
                tracker.log(new)
            count += len(new)
            if once or rounds.ended:
                return count
            time.sleep(interval)
    finally:
        rounds.close()
        for tracker in trackers:
            tracker.finish(once or rounds.complete)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m murmurate.track", description=__doc__.split("\n")[0])
    parser.add_argument("daemon", help="its URL, its directory, or its folder below daemon.metrics_dir")
    parser.add_argument("--mlflow", metavar="URI", help="an MLflow server, or the path of a local store")
    parser.add_argument("--wandb", metavar="PROJECT", help="a project of Weights & Biases")
    parser.add_argument("--experiment", metavar="NAME", help="experiment of MLflow, group of wandb [default: the run's name]")
    parser.add_argument("--once", action="store_true", help="log the rounds that are there, and end")
    chosen = parser.parse_args(arguments)
    if not (chosen.mlflow or chosen.wandb):
        parser.error("say where to log: --mlflow URI, --wandb PROJECT, or both")
    try:
        rounds = source(chosen.daemon)
        about = rounds.about()
        trackers: list[Mlflow | Wandb] = []
        if chosen.mlflow:
            trackers.append(Mlflow(chosen.mlflow, about, chosen.experiment))
        if chosen.wandb:
            trackers.append(Wandb(chosen.wandb, about, chosen.experiment))
        print(f"following daemon {about['peer'][:8]}; Ctrl+C ends this", flush=True)
        print(f"{follow(rounds, trackers, chosen.once)} rounds logged", flush=True)
    except MurmurateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
