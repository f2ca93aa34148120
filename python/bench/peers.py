"""Measures what a user could pick beside ours: gloo's all-reduce beside rounds of the daemon, and PyTorch's inner
steps beside those of the built-in models. `cargo xtask peers` starts it; docs/benchmarks.md has its columns.

Both sides take turns, so that a machine that becomes slower slows both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS, ROUNDS = "4", "3"
LOAD_MAX = 0.5
MODELS = ["mlp", "cnn", "resnet18"]
LANGUAGE_MODELS = ["llama-0.85m", "llama-4.9m", "gpt2-0.9m"]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def printed(*command: str, **variables: str) -> str:
    """The standard output of a program. Its messages still show."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **variables})
    if done.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed")
    return done.stdout


def round_ms(report: str) -> tuple:
    """Milliseconds by the clock and of the CPU, in the report of `murmurate bench exchange` or of gloo.py."""
    times = json.loads(report)
    return 1e3 * times["round_s"], 1e3 * times["cpu_s_per_peer"]


def step_ms(model: str, lines: str) -> tuple:
    """The same of a model, in the lines of the example `inner_steps` or of inner_steps.py."""
    words = next((line.split() for line in lines.splitlines() if line.startswith(f"{model} ")), [])
    if len(words) < 3:
        sys.exit(f"no times of {model} in:\n{lines}")
    return float(words[1]), float(words[2])


def in_turn(what: str, runs: int, *measures: Callable) -> list:
    """The medians of all, which run one after the other, and again."""
    taken = []
    for run in range(runs):
        say(f"{what}: run {run + 1} of {runs}")
        taken.append([measure() for measure in measures])
    return [tuple(map(statistics.median, zip(*times))) for times in zip(*taken)]


def row(measured: str, ours: tuple, beside: str, other: tuple) -> dict:
    times = {"ms": ours[0], "cpu_ms": ours[1], "beside": beside, "beside_ms": other[0], "beside_cpu_ms": other[1]}
    return {"measured": measured, **times, "ratio": other[0] / ours[0]}


def built(options: argparse.Namespace, program: str, *what: str) -> str:
    """A program of ours, which cargo builds now unless it is built already."""
    if options.binaries:
        return os.path.abspath(os.path.join(options.binaries, program))
    printed("cargo", "build", "--release", *what)
    return os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release", program)


def exchange(options: argparse.Namespace) -> list:
    program, params = built(options, "murmurate", "-p", "murmurate"), str(options.params)

    def ours(codec):
        sizes = ["--nodes", PEERS, "--params", params, "--rounds", ROUNDS]
        return round_ms(printed(program, "bench", "exchange", *sizes, "--codec", codec, "--json"))

    def gloo():
        return round_ms(printed(options.python, os.path.join(HERE, "gloo.py"), PEERS, params, ROUNDS))

    f32, other, int8 = in_turn("exchange", options.runs, lambda: ours("f32"), gloo, lambda: ours("int8"))
    return [row(f"round, {codec}", times, "gloo, f32", other) for codec, times in (("f32", f32), ("int8", int8))]


def steps(options: argparse.Namespace) -> list:
    program = built(options, "examples/inner_steps", "-p", "murmurate-tasks", "--example", "inner_steps")
    models = MODELS + LANGUAGE_MODELS
    if subprocess.run([options.python, "-c", "import transformers"], stderr=subprocess.DEVNULL).returncode != 0:
        say("Llama and GPT-2 are left out, because transformers cannot be imported: pip install transformers")
        models = MODELS
    rows = []
    for model in models:
        def ours():
            return step_ms(model, printed(program, model, ROUNDS, RAYON_NUM_THREADS="2"))

        def torch():
            return step_ms(model, printed(options.python, os.path.join(HERE, "inner_steps.py"), model, ROUNDS))

        times, other = in_turn(model, options.runs, ours, torch)
        rows.append(row(f"inner step, {model}", times, "PyTorch", other))
    return rows


def table(rows: list) -> str:
    lines = ["| measured | ms | CPU ms | beside it | ms | CPU ms | ratio |", "|---|--:|--:|---|--:|--:|--:|"]
    for values in rows:
        cells = [f"{value:.2f}" if isinstance(value, float) else value for value in values.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="cargo xtask peers", allow_abbrev=False)
    parser.add_argument("part", nargs="?", choices=["exchange", "steps", "all"], default="all")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side [default: 5]")
    parser.add_argument("--params", type=int, default=100_000_000, help="of the exchange [default: 100000000]")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch [default: python3]")
    parser.add_argument("--binaries", help="a folder as target/release, instead of building")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    load = round(os.getloadavg()[0], 2)
    if load > LOAD_MAX:
        say(f"the load is {load}: other work slows the threads of PyTorch most, because they spin while they wait")
    torch = printed(options.python, "-c", "import torch; print(torch.__version__)").strip()
    about = {"cores": os.cpu_count(), "load": load, "torch": torch, "runs": options.runs, "params": options.params}
    rows = [] if options.part == "steps" else exchange(options)
    rows += [] if options.part == "exchange" else steps(options)
    if options.json:
        print(json.dumps({**about, "rows": rows}))
    else:
        print(", ".join(f"{name} {value}" for name, value in about.items()), table(rows), sep="\n\n")


if __name__ == "__main__":
    main()
