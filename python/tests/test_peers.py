"""The script behind `cargo xtask peers`, with programs that print known times in place of those that it measures."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "bench", "peers.py")

MURMURATE = """case "$*" in *f32*) wall=3 ;; *) wall=2 ;; esac
echo '{"round_s": '$wall', "cpu_s_per_peer": 1.5}'"""

INNER_STEPS = """[ "$RAYON_NUM_THREADS" = 2 ] || exit 1
echo "model ms/step CPU ms loss"
echo "$1 4.00 6.00 0.5" """

# A Python with torch and without transformers.
PYTHON = """case "$*" in
*transformers) exit 1 ;;
"-c import torch;"*) echo 2.9; exit ;;
*gloo.py*) echo '{"round_s": 1.5, "cpu_s_per_peer": 0.5}'; exit ;;
*cnn*) [ -z "$BROKEN" ] || exit 1 ;;
esac
echo "$2 2.00 3.00 2.3" """


class Peers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(os.path.join(self.folder.name, "examples"))
        for name, text in ("murmurate", MURMURATE), ("examples/inner_steps", INNER_STEPS), ("python", PYTHON):
            path = os.path.join(self.folder.name, name)
            with open(path, "w") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)

    def run_script(self, *words, **variables):
        places = ["--binaries", self.folder.name, "--python", os.path.join(self.folder.name, "python")]
        command = [sys.executable, SCRIPT, *words, "--runs", "2", *places]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})

    def test_both_codecs_stand_beside_gloo(self):
        done = self.run_script("exchange", "--json")
        report = json.loads(done.stdout)
        self.assertEqual((report["torch"], report["runs"], report["params"]), ("2.9", 2, 100_000_000))
        rows = [(row["measured"], row["ms"], row["beside_ms"], row["ratio"]) for row in report["rows"]]
        self.assertEqual(rows, [("round, f32", 3000, 1500, 0.5), ("round, int8", 2000, 1500, 0.75)])

    def test_models_of_transformers_are_left_out_without_it(self):
        done = self.run_script("steps")
        self.assertIn("pip install transformers", done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| inner")]
        times = "| 4.00 | 6.00 | PyTorch | 2.00 | 3.00 | 0.50 |"
        self.assertEqual(rows, [f"| inner step, {name} {times}" for name in ("mlp", "cnn", "resnet18")])

    def test_a_program_that_fails_is_named(self):
        done = self.run_script("steps", BROKEN="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("inner_steps.py cnn 3` failed", done.stderr)


if __name__ == "__main__":
    unittest.main()
