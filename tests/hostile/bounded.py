"""Loading in another process, where memory can be measured, and where a hang or a crash is only a failed test."""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
BUDGET = 256 * MIB
TIMEOUT = 60  # a hang, on the slowest of machines; how fast things are is not tested here

_WORKER = """
import contextlib, json, os, pathlib, re, sys
import onnx, onnx.parser, sardonyx as sx
from sardonyx.errors import SardonyxError
from sardonyx.model.stored import stored_tensors

def memory(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(name + r":\\s+(\\d+) kB", status)[1]) * 1024

TINY = '<ir_version: 10, opset_import: ["" : 20]> g (float[1] x) => (float[1] y) { y = Identity(x) }'
sx.load(TINY)
for line in sys.stdin:
    job = json.loads(line)
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before, said = memory("VmHWM"), {}
    try:
        exec(job["script"], dict(globals(), arguments=job["arguments"]))
    except SardonyxError as error:
        said = dict(kind=type(error).__name__, text=str(error), where=error.where,
                    value=str(error.value), limit=str(error.limit))
    except BaseException as error:
        said = dict(kind=type(error).__name__, text=repr(error))
    print(json.dumps(dict(said, growth=memory("VmHWM") - before)), flush=True)
"""
_workers: list[subprocess.Popen[str]] = []  # one, which serves test after test until it dies


@dataclass(frozen=True)
class Outcome:
    """What came of a script: the error by its class, or an empty kind, and how much memory it took."""

    growth: int
    kind: str = ""
    text: str = ""
    where: str | None = None
    value: str = ""
    limit: str = ""


def run_bounded(script: str, *arguments: str | Path) -> Outcome:
    """Run a script; it sees `sx`, `onnx`, `os`, `stored_tensors`, `SardonyxError` and `arguments`."""
    if not _workers:
        _workers.append(
            subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    worker = _workers[0]
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(
        json.dumps({"script": script, "arguments": list(map(str, arguments))}) + "\n"
    )
    worker.stdin.flush()
    ready, _, _ = select.select([worker.stdout], [], [], TIMEOUT)
    answer = worker.stdout.readline() if ready else ""
    if not answer:
        _stop()
    assert answer, "the process hung" if not ready else f"the process died: {worker.returncode}"
    return Outcome(**json.loads(answer))


def load_bounded(path: Path, within: int = BUDGET) -> Outcome:
    """Load a file; whatever comes of it, it stays within the memory budget."""
    outcome = run_bounded("sx.load(arguments[0])", path)
    assert outcome.growth < within, f"{outcome.growth / MIB:.0f} MiB"
    return outcome


@atexit.register
def _stop() -> None:
    while _workers:
        worker = _workers.pop()
        worker.kill()
        worker.communicate()
