"""The Python that has Paddle, and what it is asked to do.

Paddle and paddle2onnx pin versions that clash with everybody else's, so that they live in an environment of their own.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.conversion.candidate import Feeds
from sardonyx.errors import ConvertError, MissingExtraError
from sardonyx.options import read_environment

__all__ = ["PaddlePython", "find_paddle"]

_CHILD = Path(__file__).with_name("child.py")
_MOST_NOISE = 500
_LONGEST = 1800.0  # seconds
_INSTALL = (
    "Make one and name it: python -m venv paddle-env; paddle-env/bin/pip install paddlepaddle paddle2onnx; "
    "then options={'paddle_python': 'paddle-env/bin/python'} or SARDONYX_PADDLE_PYTHON."
)


@dataclass(frozen=True)
class PaddlePython:
    """An interpreter with paddlepaddle and paddle2onnx."""

    program: Path

    def convert(self, model: Path, params: Path, folder: Path, opset: int | None) -> Path:
        """`model.onnx` in the folder.

        Raises:
            ConvertError: paddle2onnx fails; the message has its last words.
        """
        wanted = [] if opset is None else [str(opset)]
        said = self._do("convert", model, params, folder, *wanted)
        made = folder / "model.onnx"
        if not made.is_file():
            raise ConvertError(f"paddle2onnx wrote no model: …{said}", where=str(model))
        return made

    def run(self, model: Path, params: Path, trials: Sequence[Feeds]) -> list[list[Any]]:
        """What Paddle answers to every set of inputs, in one process.

        Raises:
            ConvertError: Paddle fails.
        """
        with tempfile.TemporaryDirectory(prefix="sardonyx-paddle-") as name:
            folder = Path(name)
            for index, feeds in enumerate(trials):
                arrays: Mapping[str, Any] = {key: np.asarray(value) for key, value in feeds.items()}
                np.savez(folder / f"in-{index}.npz", **arrays)
            self._do("run", model, params, folder)
            answers = []
            for index in range(len(trials)):
                with np.load(folder / f"out-{index}.npz", allow_pickle=False) as found:
                    answers.append([found[f"arr_{at}"] for at in range(len(found.files))])
            return answers

    def _do(self, task: str, model: Path, params: Path, folder: Path, *rest: str) -> str:
        command = [self.program, "-I", _CHILD, task, model, params, folder, *rest]
        try:
            done = subprocess.run(
                [str(part) for part in command],
                capture_output=True,
                timeout=_LONGEST,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            raise MissingExtraError(
                f"the Python with Paddle cannot be started: {error.strerror}.",
                where=str(self.program),
                hint=_INSTALL,
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ConvertError(f"Paddle did not end in {_LONGEST:.0f} s.") from error
        said = " ".join((done.stdout + done.stderr).decode(errors="replace").split())[-_MOST_NOISE:]
        if done.returncode and "No module named 'paddle" in said:
            raise MissingExtraError(
                f"this Python has no Paddle: …{said[-120:]}", where=str(self.program), hint=_INSTALL
            )
        if done.returncode:
            what = "paddle2onnx" if task == "convert" else "Paddle"
            raise ConvertError(f"{what} failed (exit code {done.returncode}): …{said}")
        return said


def find_paddle(given: Any = None) -> PaddlePython:
    """The interpreter that was named.

    Raises:
        MissingExtraError: none was, or there is none.
    """
    program = given or read_environment().paddle_python
    if not program:
        raise MissingExtraError("Paddle needs an environment of its own.", hint=_INSTALL)
    path = Path(program)
    if not path.is_file():
        raise MissingExtraError("there is no such Python.", where=str(path), hint=_INSTALL)
    return PaddlePython(path)
