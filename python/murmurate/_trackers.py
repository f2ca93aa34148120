"""Where values of rounds go: MLflow and Weights & Biases, each by the client that the user installed."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Iterator, Mapping, Sequence

from ._errors import MurmurateError
from ._rounds import NOT_METRICS

# MLflow takes at most 1,000 values in one request.
_BATCH = 1000


class Mlflow:
    """A run of MLflow. `uri` is a server's URL or the path of a local store."""

    def __init__(self, uri: str, about: Mapping[str, Any], experiment: str | None = None) -> None:
        try:
            import mlflow
            from mlflow.entities import Metric, Param
            from mlflow.exceptions import MlflowException
        except ImportError:
            raise MurmurateError("MLflow is not installed: pip install mlflow-skinny") from None
        self._metric, self._errors, self._uri = Metric, MlflowException, uri
        with self._in_one_line():
            self._begin(mlflow.MlflowClient(tracking_uri=uri), about, experiment, Param)

    def _begin(self, client: Any, about: Any, experiment: Any, param: Any) -> None:
        self._client = client
        name = experiment or about.get("run") or "murmurate"
        found = self._client.get_experiment_by_name(name)
        experiment_id = found.experiment_id if found else self._client.create_experiment(name)
        run = self._client.create_run(experiment_id, run_name=about["peer"][:8])
        self.id = run.info.run_id
        params = [param(key, str(value)) for key, value in about.items()]
        self._client.log_batch(self.id, params=params)

    def log(self, rounds: Sequence[Mapping[str, Any]]) -> None:
        """Logs these rounds; the step is the round."""
        values = [
            self._metric(key, value, int(1000 * values.get("unix_s", time.time())), int(values["round"]))
            for values in rounds
            for key, value in _metrics(values)
        ]
        with self._in_one_line():
            for start in range(0, len(values), _BATCH):
                self._client.log_batch(self.id, metrics=values[start : start + _BATCH])

    def finish(self, complete: bool) -> None:
        """Ends the run: finished, or killed if the daemon went away before."""
        with self._in_one_line():
            self._client.set_terminated(self.id, status="FINISHED" if complete else "KILLED")

    @contextlib.contextmanager
    def _in_one_line(self) -> Iterator[None]:
        """MLflow's client has tried again for minutes before it gives up."""
        try:
            yield
        except self._errors as error:
            raise MurmurateError(f"MLflow at {self._uri}: {error}") from None


class Wandb:
    """A run of Weights & Biases. `WANDB_MODE=offline` keeps it on this machine."""

    def __init__(self, project: str, about: Mapping[str, Any], experiment: str | None = None) -> None:
        try:
            import wandb
        except ImportError:
            raise MurmurateError("wandb is not installed: pip install wandb") from None
        group = experiment or about.get("run")
        try:
            self._run = wandb.init(project=project, name=about["peer"][:8], group=group, config=about)
        except wandb.errors.Error as error:
            raise MurmurateError(f"wandb: {error}") from None
        self.id = self._run.id

    def log(self, rounds: Sequence[Mapping[str, Any]]) -> None:
        """Logs these rounds; the step is the round."""
        for values in rounds:
            self._run.log(dict(_metrics(values)), step=int(values["round"]))

    def finish(self, complete: bool) -> None:
        """Ends the run."""
        self._run.finish(exit_code=0 if complete else 1)


def _metrics(values: Any) -> Iterator[tuple[str, float]]:
    """The values to plot. Neither tracker takes infinity and NaN everywhere."""
    for key, value in values.items():
        if key not in NOT_METRICS and math.isfinite(value):
            yield key, float(value)
