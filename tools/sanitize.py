"""Generated code under the sanitizers of gcc.

    python tools/sanitize.py address    the official cases, under AddressSanitizer and UBSan
    python tools/sanitize.py thread     the standard models with 8 threads, under ThreadSanitizer

Python itself is not instrumented, so the sanitizer's runtime is loaded before it, in worker processes.
Every tensor and constant gets a block of its own, between guard zones, filled with NaN: what a kernel reads
before it was written, or past its end, is seen. A worker that a sanitizer ends is started again behind
the case that it was at. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks/

THREADS = 8
ROUNDS = 3  # of each standard model, on several Python threads at once
CALLERS = 2
ALIGNMENT = 64
SHOWN = 60  # lines of a sanitizer's report

COMMON = ("-O1", "-g", "-fno-omit-frame-pointer")
FLAGS = {
    "address": (
        *COMMON,
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize-recover=all",
    ),
    "thread": (*COMMON, "-fsanitize=thread"),
}
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# Python never frees all it has; memory that nobody wrote reads as NaN.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:malloc_fill_byte=255",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:ignore_noninstrumented_modules=1:die_after_fork=0",
}
# Small enough for a sanitizer; the models of one size only are taken as they are.
SIZES: dict[str, dict[str, Any]] = {
    "resnet50": {"batch": 2, "image": 64},
    "bert_base": {"batch": 2, "seq": 9},
    "vit_b16": {"batch": 1, "image": 64},
    "gpt2": {"batch": 2, "seq": 9},
}


# ---------------------------------------------------------------- in a worker


class Blocks:
    """Memory blocks, freed together."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(
            None
        )  # the sanitizer's own allocator stands before the C library's
        self._libc.free.argtypes = (ctypes.c_void_p,)
        self._taken: list[ctypes.c_void_p] = []

    def take(self, size: int) -> int:
        address = ctypes.c_void_p()
        if self._libc.posix_memalign(
            ctypes.byref(address), ctypes.c_size_t(ALIGNMENT), ctypes.c_size_t(max(size, 1))
        ):
            raise MemoryError(f"{size} bytes")
        self._taken.append(address)
        assert address.value is not None
        ctypes.memset(address, 0xFF, size)
        return address.value

    def __del__(self) -> None:
        for address in self._taken:
            self._libc.free(address)


def place_apart(layout: Any, pointers: Any) -> Blocks:
    """Every slot of the arena in a block of its own."""
    blocks = Blocks()
    taken: dict[int, int] = {}
    for tensor, slot, _, size in layout.offsets:
        if slot not in taken:  # tensors that follow each other in place share one
            taken[slot] = blocks.take(size)
        pointers[tensor] = taken[slot]
    return blocks


def instrument(kind: str) -> None:
    """From here on, sessions compile for the sanitizer."""
    from sardonyx.runtime import session
    from sardonyx.runtime.compiled import Instruments, compile_native
    from sardonyx.runtime.threads import make_pool

    instruments = Instruments(FLAGS[kind], make_pool(THREADS, FLAGS[kind]), place_apart)
    session.compile_native = functools.partial(compile_native, instruments=instruments)


Job = tuple[str, Callable[[], tuple[bool, str]]]


@dataclass(frozen=True)
class Share:
    """Every `of`-th job from `number` on, among those whose name contains `match`."""

    kind: str
    number: int
    of: int
    match: str
    folder: Path  # for what the parent hands to its workers

    def jobs(self) -> list[Job]:
        jobs = address_jobs(self.folder) if self.kind == "address" else thread_jobs()
        return [job for job in jobs if self.match in job[0]][self.number :: self.of]


def address_jobs(folder: Path) -> list[Job]:
    """Every official case, and whether all of it ran native."""
    from sardonyx.comparison.conformance import Case, run_case

    def run(case: Case) -> tuple[bool, str]:
        result = run_case(case)
        return result.backend == "native", result.reason

    cases = pickle.loads((folder / "cases").read_bytes())
    return [(case.name, functools.partial(run, case)) for case in cases]


def write_cases(folder: Path) -> None:
    """For the workers, which would take minutes to make them."""
    from sardonyx.comparison.conformance import load_cases

    (folder / "cases").write_bytes(pickle.dumps(load_cases()))


def thread_jobs() -> list[Job]:
    """Every standard model: a Python thread or two run it, and eight of the pool work on each run."""
    from benchmarks.models import STANDARD

    return [(name, functools.partial(run_standard, name)) for name in STANDARD]


def run_standard(name: str) -> tuple[bool, str]:
    import numpy as np
    from benchmarks.models import build, example_inputs

    from sardonyx import Session

    path = build(name, dynamic=name in SIZES)
    session = Session(path.read_bytes(), threads=THREADS)  # bytes are compiled here, never kept
    feeds = example_inputs(name, **SIZES.get(name, {}))
    expected = session.run(None, feeds)
    wrong: list[str] = []

    def call() -> None:
        for _ in range(ROUNDS):
            for got, wanted in zip(session.run(None, feeds), expected, strict=True):
                if not np.array_equal(got, wanted):
                    wrong.append("two runs gave different bits")

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    if not all(np.isfinite(array).all() for array in expected):
        wrong.append("not finite")
    return all(p.backend == "native" for p in session.placement), "; ".join(sorted(set(wrong)))


def work(share: Share, first: int) -> None:
    """Do the jobs of a share from the first on; lines of JSON say when one begins and how it ended."""
    os.environ.pop("LD_PRELOAD")  # for this process alone, not for the compilers that it starts
    instrument(share.kind)
    for number, (name, run) in enumerate(share.jobs()):
        if number < first:
            continue
        print(json.dumps({"number": number, "name": name}), flush=True)
        native, reason = run()
        print(json.dumps({"native": native, "reason": reason}), flush=True)
    print(json.dumps({"done": True}), flush=True)


# ---------------------------------------------------------------- in the parent


@dataclass
class Tally:
    """What came of one share."""

    ran: int = 0
    native: int = 0
    findings: list[tuple[str, str]] = field(default_factory=list)

    def find(self, name: str, report: str) -> None:
        self.findings.append((name, report))
        print(f"\n{name}\n{report}\n", flush=True)


def run_share(share: Share, tally: Tally) -> None:
    first = 0
    while True:
        position, name, report = -1, "(between cases)", ""
        for said in listen(share, first):
            if "done" in said:
                return
            if "name" in said:
                position, name = said["number"], said["name"]
            elif "died" in said:
                report = said["died"]
            else:
                tally.ran += 1
                tally.native += said["native"]
                if said["reason"]:
                    tally.find(name, said["reason"])
        tally.find(name, report)
        if position < first:
            return  # it died before it began: it would again
        tally.ran += 1
        first = position + 1


def listen(share: Share, first: int) -> Iterator[dict[str, Any]]:
    """What a worker says line by line; at last what the sanitizer said, if it ended the worker."""
    argv = [sys.executable, __file__, share.kind, "--match", share.match, "--work"]
    argv += [str(share.number), str(share.of), str(first), str(share.folder)]
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        worker = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(share.kind),
            cwd=ROOT,
        )
        assert worker.stdout is not None
        for line in worker.stdout:
            yield json.loads(line)
        code = worker.wait()
        errors.seek(0)
        lines = [line.rstrip() for line in errors if line.strip()]
    yield {"died": "\n".join([f"exit code {code}", *lines[:SHOWN]])}


def environment(kind: str) -> dict[str, str]:
    cache = ROOT / "build" / f"sanitize-{kind}"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in RUNTIMES[kind]
    ]
    return {
        **os.environ,
        **OPTIONS,
        "LD_PRELOAD": " ".join(paths),
        "SARDONYX_CC": "gcc",
        "SARDONYX_CACHE": str(cache),
        "PYTHONWARNINGS": "ignore",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=sorted(FLAGS))
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        number, of, first, folder = given.work
        work(Share(given.kind, int(number), int(of), given.match, Path(folder)), int(first))
        return 0
    # A model under the ThreadSanitizer takes all there is; official cases are small.
    of = 1 if given.kind == "thread" else min(4, os.cpu_count() or 1)
    tallies = [Tally() for _ in range(of)]
    with tempfile.TemporaryDirectory() as name:
        if given.kind == "address":
            write_cases(Path(name))
        shares = [Share(given.kind, number, of, given.match, Path(name)) for number in range(of)]
        threads = [
            threading.Thread(target=run_share, args=pair)
            for pair in zip(shares, tallies, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    findings = sum(len(tally.findings) for tally in tallies)
    ran, native = sum(tally.ran for tally in tallies), sum(tally.native for tally in tallies)
    print(f"{given.kind}: {ran} ran, {native} of them native, {findings} findings")
    return 1 if findings or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
