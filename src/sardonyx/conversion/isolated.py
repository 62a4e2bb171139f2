"""Files are converted in a process of their own: a crash, a `sys.exit` or clashing libraries end there.

The request goes over as a pickle that we wrote ourselves, into a folder that only this user can enter; the model comes
back as a file, and what is known about it as a pickle.
"""

from __future__ import annotations

import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sardonyx.conversion.convert import Converted, convert_model
from sardonyx.conversion.frontends import find_frontend
from sardonyx.conversion.python_source import PythonSource
from sardonyx.conversion.request import Request
from sardonyx.errors import ConvertError, InputError, SardonyxError
from sardonyx.model.load import load
from sardonyx.model.save import save

__all__ = ["convert_isolated", "serve"]

_MOST_NOISE = 400


@dataclass(frozen=True)
class _Order:
    """What the child is to do."""

    request: Request
    framework: str | None
    check: bool
    engine: str


def convert_isolated(
    request: Request,
    *,
    framework: str | None = None,
    check: bool = True,
    engine: str = "sardonyx",
    progress: Callable[[str], None] | None = None,
) -> Converted:
    """`convert_model` in another process.

    Raises:
        SardonyxError: whatever the child raised on purpose.
        ConvertError: the child died.
    """
    if request.path is not None:
        find_frontend(request.path, framework)  # what can be refused here needs no other process
    folder = Path(tempfile.mkdtemp(prefix="sardonyx-convert-"))
    try:
        (folder / "order").write_bytes(_packed(_Order(request, framework, check, engine)))
        noise = _run(folder, progress)
        answer = folder / "answer"
        if not answer.exists():
            raise ConvertError(
                f"the framework's process ended without an answer{noise}",
                where=str(request.source),
                hint="Convert the live object with sx.convert to see its own traceback.",
            )
        result: Converted | SardonyxError = pickle.loads(answer.read_bytes())
        if isinstance(result, SardonyxError):
            raise result
        model = load(folder / "model.onnx")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)  # weights are mapped from it
    return replace(result, model=model)


def _packed(order: _Order) -> bytes:
    try:
        return pickle.dumps(order)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"an example or an option cannot go to another process: {error}.",
            where=str(order.request.source),
            hint="Give arrays and plain values; of functions, those that a module defines by name.",
        ) from error


def _run(folder: Path, progress: Callable[[str], None] | None) -> str:
    """Run the child to its end; how it ended, where that was not well."""
    command = [sys.executable, "-m", "sardonyx.conversion.worker", str(folder)]
    with (
        (folder / "noise").open("wb") as noise,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=noise, text=True
        ) as child,
    ):
        assert child.stdout is not None
        for line in child.stdout:
            if progress is not None:
                progress(line.strip())
        code = child.wait()
    if code == 0:
        return ""
    ended = f" (signal {signal.Signals(-code).name})" if code < 0 else f" (exit code {code})"
    said = " ".join((folder / "noise").read_bytes().decode(errors="replace").split())
    return f"{ended}: …{said[-_MOST_NOISE:]}" if said else ended


def serve(folder: Path, tell: Callable[[str], None]) -> None:
    """The child's side: do what the order says, and leave the answer beside it."""
    order: _Order = pickle.loads((folder / "order").read_bytes())
    answer: Any
    try:
        source = order.request.source
        if isinstance(source, PythonSource):
            source = source.load()
        converted = convert_model(
            replace(order.request, source=source),
            framework=order.framework,
            check=order.check,
            engine=order.engine,
            progress=tell,
        )
        save(converted.model, folder / "model.onnx")
        answer = replace(converted, model=None)  # type: ignore[arg-type]  # it goes as a file
    except SardonyxError as error:
        error.value = repr(error.value)[:200]  # a framework's object may not go over
        error.__cause__ = error.__context__ = None
        answer = error
    (folder / "answer.part").write_bytes(pickle.dumps(answer))
    (folder / "answer.part").rename(folder / "answer")
