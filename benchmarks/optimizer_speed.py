"""Is an optimized file faster? onnxruntime, and our own Session, on the original and on the result of `optimize`.

    python -m benchmarks.optimizer_speed --prepare       optimize and compile everything, time nothing; once, before a quiet run
    python -m benchmarks.optimizer_speed                 every model: median ratio of the rounds, and their spread
    python -m benchmarks.optimizer_speed ppocr --seconds 2 --with swish

Each model has a process of its own, and both files are timed in it in turns: a pause, a block of calls of one, a pause, a block of
the other, the order reversed in the next round. A ratio below 1 is a gain. "slower" says that even the best round was past the noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.optimizers import MARK, ROOT, feeds_of, models

FOLDER = ROOT / "build" / "optimized"
ENGINES = ("onnxruntime", "sardonyx")
ROUNDS = 4
PAUSE = 0.05
SETTLED = 2.2  # seconds; a Session looks at a younger file before every run
NOISE = 0.03  # of a ratio, on a quiet machine
MOST_SECONDS = 300

Call = Callable[[], object]


def optimized(path: Path, engine: str, rules: list[str]) -> Path:
    """The result for an engine, made anew; `rules` are used though they were found slower there."""
    import sardonyx
    from sardonyx.inspection.runtimes import newest_opset
    from sardonyx.model.load import load
    from sardonyx.model.save import save
    from sardonyx.passes.optimize import Settings, optimize
    from sardonyx.passes.slower import SLOWER
    from sardonyx.runtime.folding import fold_node

    if rules:
        without = SLOWER.get(engine, frozenset()) - set(rules)
        settings = Settings(3, without, highest=newest_opset(engine))
        made = optimize(load(path), settings, evaluate=fold_node).model
    else:
        made = sardonyx.optimize(path, runtime=engine, verify=False).model
    target = FOLDER / f"{path.stem}-{engine}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    save(made, target)
    return target


def opened(engine: str, path: Path, feeds: dict[str, Any]) -> Call:
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feeds)
    import sardonyx

    own = sardonyx.Session(path)
    return lambda: own.run(None, feeds)


def block(call: Call, seconds: float, calls: int) -> tuple[float, int]:
    """The median of so many calls, or of as many as fit; and how many there were."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < calls and (len(times) < 2 or time.perf_counter() < end):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), len(times)


def race(before: Call, after: Call, seconds: float) -> dict[str, Any]:
    """The ratio of each round, and the median times."""
    for call in (before, after):
        call()
        call()
    share = seconds / (2 * ROUNDS)
    found: dict[str, list[float]] = {"before": [], "after": []}
    for number in range(ROUNDS):
        pair = [("before", before), ("after", after)]
        for name, call in pair if number % 2 == 0 else reversed(pair):
            time.sleep(PAUSE)
            call()
            found[name].append(block(call, share, 200)[0])
    ratios = [b / a for a, b in zip(found["before"], found["after"], strict=True)]
    return {
        "before": statistics.median(found["before"]),
        "after": statistics.median(found["after"]),
        "ratios": ratios,
    }


def run_one(path: Path, engine: str, seconds: float, rules: list[str]) -> None:
    feeds = feeds_of(path)[0]
    before = opened(engine, path, feeds)
    made = optimized(path, engine, rules)
    time.sleep(SETTLED)
    after = opened(engine, made, feeds)
    if seconds == 0:
        before()
        after()
        print(MARK + json.dumps({}))
        return
    print(MARK + json.dumps(race(before, after, seconds)))


def in_process(path: Path, engine: str, seconds: float, rules: list[str]) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.optimizer_speed", "--seconds", str(seconds)]
    command += ["--one", str(path), engine, *(word for rule in rules for word in ("--with", rule))]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=MOST_SECONDS, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return None
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return dict(json.loads(line[len(MARK) :]))
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of models' names")
    parser.add_argument("--seconds", type=float, default=1.2, help="of timed calls a model")
    parser.add_argument("--engine", choices=ENGINES, help="one of them; both where none is named")
    parser.add_argument("--prepare", action="store_true", help="make and compile, time nothing")
    parser.add_argument("--with", dest="rules", action="append", default=[], metavar="RULE")
    parser.add_argument("--one", nargs=2, metavar=("PATH", "ENGINE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seconds = 0.0 if arguments.prepare else arguments.seconds
    if arguments.one:
        run_one(Path(arguments.one[0]), arguments.one[1], seconds, arguments.rules)
        return
    medians: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _, path in models():
        if not any(name in path.stem for name in arguments.names or ("",)):
            continue
        for engine in ENGINES if arguments.engine is None else (arguments.engine,):
            found = in_process(path, engine, seconds, arguments.rules)
            if not found:
                word = "ready" if found is not None else "does not run"
                print(f"{path.stem:32} {engine:12} {word}", flush=True)
                continue
            ratios = sorted(found["ratios"])
            medians[engine].append(statistics.median(ratios))
            slower = ratios[0] > 1 + NOISE
            print(
                f"{path.stem:32} {engine:12} {found['before'] * 1e3:9.3f} ms → {found['after'] * 1e3:9.3f} ms  "
                f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f}){'  slower' * slower}",
                flush=True,
            )
    for engine, every in medians.items():
        if every:
            mean = statistics.geometric_mean(every)
            print(f"{engine}: {len(every)} models, mean ratio {mean:.3f}, largest {max(every):.3f}")


if __name__ == "__main__":
    main()
