"""Rounds of a daemon in MLflow and in Weights & Biases, read back. `tests/e2e/tracking.rs` follows a daemon
that runs."""

import http.server
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from murmurate import MurmurateError, track  # noqa: E402


# MLflow keeps a store of files only where it is asked for.
ALLOWED = {"MLFLOW_ALLOW_FILE_STORE": "true"}


BLOCK, FULL, LAST = 32768, 1, 4


def here(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def line(number, **more):
    return json.dumps({"unix_s": 1e9 + number, "round": number, "loss": 1.0 / (1 + number), "test_loss": None} | more)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.folder = os.path.join(folder.name, "1f0c9a2e")
        os.mkdir(self.folder)

    def write(self, text, name="metrics.jsonl", mode="a"):
        with open(os.path.join(self.folder, name), mode, encoding="utf-8") as file:
            file.write(text)

    def main(self, *arguments, **variables):
        """As users start it: a process of its own."""
        command = [sys.executable, "-m", "murmurate.track", *arguments]
        variables = os.environ | {"PYTHONPATH": os.path.dirname(HERE), "HOME": self.home} | variables
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def source(self, place):
        rounds = track.source(place)
        self.addCleanup(rounds.close)
        return rounds

    def taken(self, rounds):
        return [values["round"] for values in rounds.take()]

    def test_lines_are_taken_once_and_torn_ones_later(self):
        self.write(line(0) + "\n" + line(1)[:20])
        rounds = self.source(self.home)
        self.assertEqual(rounds.about(), {"peer": "1f0c9a2e"})
        self.assertEqual(self.taken(rounds), [0])
        self.assertEqual(self.taken(rounds), [])
        self.write(line(1)[20:] + "\nno json\n[1]\n{\"loss\":1}\n" + line(2) + "\n")
        self.assertEqual(self.taken(rounds), [1, 2])

    def test_a_file_that_is_replaced_is_followed(self):
        self.write(line(0) + "\n", "metrics.1.jsonl")
        self.write(line(1) + "\n")
        rounds = self.source(self.folder)
        self.assertEqual(self.taken(rounds), [0, 1])
        self.write(line(2) + "\n")
        path = os.path.join(self.folder, "metrics.jsonl")
        os.replace(path, os.path.join(self.folder, "metrics.1.jsonl"))
        self.write(line(3) + "\n")
        self.assertEqual(self.taken(rounds), [2, 3])

    def test_no_proxy_comes_between_it_and_a_daemon_of_this_machine(self):
        class Status(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status = {key: 1 for key in ("run", "peer", "plan", "preset", "version", "rounds", "ranks")}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(status | {"memory": {"parameters": 7}}).encode())

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Status)
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        # Nothing listens at the proxy.
        with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}):
            for host in ("127.0.0.1", "localhost"):
                self.assertEqual(self.source(f"http://{host}:{server.server_port}").about()["parameters"], 7)
            elsewhere = self.source("http://murmurate.invalid:80")
            with self.assertRaisesRegex(MurmurateError, "refused"):
                elsewhere.about()

    def test_what_is_no_daemon_is_named(self):
        code, said = self.main("--mlflow", self.home, self.home)
        self.assertEqual(code, 1)
        self.assertIn("is no daemon: give the URL that it prints", said)
        self.write(line(0) + "\n")
        os.mkdir(os.path.join(self.home, "2b"))
        with open(os.path.join(self.home, "2b", "metrics.jsonl"), "w", encoding="utf-8") as file:
            file.write(line(0) + "\n")
        with self.assertRaisesRegex(MurmurateError, "several daemons; name one: 1f0c9a2e, 2b"):
            track.source(self.home)
        code, said = self.main(self.folder)
        self.assertEqual(code, 2)
        self.assertIn("say where to log", said)

    @here("mlflow")
    def test_mlflow_holds_every_value(self):
        self.write("".join(line(n, test_accuracy=0.5) + "\n" for n in range(3)) + line(3, loss=float("inf")) + "\n")
        store = "file://" + os.path.join(self.home, "mlruns")
        code, said = self.main("--mlflow", store, "--experiment", "birds", "--once", self.folder, **ALLOWED)
        self.assertEqual(code, 0, said)
        self.assertIn("\n4 rounds logged\n", said)
        with mock.patch.dict(os.environ, ALLOWED):
            import mlflow

            client = mlflow.MlflowClient(tracking_uri=store)
            [run] = client.search_runs([client.get_experiment_by_name("birds").experiment_id])
            losses = client.get_metric_history(run.info.run_id, "loss")
        self.assertEqual([(m.step, m.value, m.timestamp) for m in losses], [
            (0, 1.0, 1_000_000_000_000), (1, 0.5, 1_000_000_001_000), (2, 1 / 3, 1_000_000_002_000)
        ])
        self.assertEqual(run.data.metrics["test_accuracy"], 0.5)
        self.assertNotIn("test_loss", run.data.metrics)
        self.assertEqual(run.data.params["peer"], "1f0c9a2e")
        self.assertEqual((run.info.run_name, run.info.status), ("1f0c9a2e", "FINISHED"))

    @here("mlflow")
    def test_a_store_that_cannot_be_used_is_one_line(self):
        self.write(line(0) + "\n")
        code, said = self.main("--mlflow", "nonsense://store", "--once", self.folder)
        self.assertEqual(code, 1, said)
        self.assertIn("error: MLflow at nonsense://store: ", said)
        self.assertNotIn("Traceback", said)

    @here("wandb")
    def test_wandb_keeps_an_offline_run(self):
        self.write("".join(line(n) + "\n" for n in range(3)))
        code, said = self.main("--wandb", "birds", "--once", self.folder, WANDB_MODE="offline", WANDB_DIR=self.home)
        self.assertEqual(code, 0, said)
        [run] = [entry for entry in os.listdir(os.path.join(self.home, "wandb")) if entry.startswith("offline-run-")]
        [file] = [name for name in os.listdir(os.path.join(self.home, "wandb", run)) if name.endswith(".wandb")]
        losses = {}
        for record in wandb_records(os.path.join(self.home, "wandb", run, file)):
            items = {item.nested_key[0] if item.nested_key else item.key: item.value_json for item in record.history.item}
            if items:
                losses[record.history.step.num] = float(items["loss"])
        self.assertEqual(losses, {0: 1.0, 1: 0.5, 2: 1 / 3})


def wandb_records(path):
    """The records of an offline run: after 7 bytes a log as LevelDB writes it, in blocks of 32 KiB."""
    from wandb.proto import wandb_internal_pb2

    with open(path, "rb") as file:
        data = file.read()
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        _crc, length, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (FULL, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


if __name__ == "__main__":
    unittest.main()
