"""Loading in a process of its own, where time and memory can be measured and a crash is only a failed test."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
BUDGET = 256 * MIB
TIMEOUT = 60  # a hang, on the slowest of machines; how fast things are is not tested here

_PRELUDE = """
import json, resource, sys
import onnx, onnx.parser, sardonyx as sx
from sardonyx.errors import SardonyxError
from sardonyx.model.opset import signature

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

sx.load('<ir_version: 10, opset_import: ["" : 20]> g (float[1] x) => (float[1] y) { y = Identity(x) }')
before = peak()
said = {}
try:
"""
_POSTLUDE = """
except SardonyxError as error:
    said = dict(kind=type(error).__name__, text=str(error), where=error.where,
                value=str(error.value), limit=str(error.limit))
print(json.dumps(dict(said, growth=peak() - before)))
"""


@dataclass(frozen=True)
class Outcome:
    """What a process said: the error by its class, or an empty kind, and how much memory it took."""

    growth: int
    kind: str = ""
    text: str = ""
    where: str | None = None
    value: str = ""
    limit: str = ""


def run_bounded(script: str, *arguments: str | Path) -> Outcome:
    """Run the lines of a script; they see `sx`, `onnx` and `sys.argv`."""
    body = "\n".join(f"    {line}" for line in script.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", _PRELUDE + body + _POSTLUDE, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def load_bounded(path: Path, within: int = BUDGET) -> Outcome:
    """Load a file; whatever comes of it, it stays within the memory budget."""
    outcome = run_bounded("sx.load(sys.argv[1])", path)
    assert outcome.growth < within, f"{outcome.growth / MIB:.0f} MiB"
    return outcome
