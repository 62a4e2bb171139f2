"""`inspect --plan`, `bench --profile` and the progress of compiling, as a user sees them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from rich.console import Console
from rich.progress import Progress
from tests.unit.plan.models import model
from typer.testing import CliRunner

from sardonyx.cli import build_app
from sardonyx.cli.console import compiling
from sardonyx.cli.profile_table import show_profile, time_text
from sardonyx.runtime.measure import Limits
from sardonyx.runtime.profile import Profile, ProfiledNode, ProfiledStep


def run(*arguments: object, columns: int = 100) -> tuple[int, str, str]:
    result = CliRunner().invoke(
        build_app(), [str(a) for a in arguments], env={"COLUMNS": str(columns), "NO_COLOR": "1"}
    )
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def convolutions(tmp_path: Path) -> Path:
    onnx.save(model("convolutions"), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_the_plan_is_printed_with_memory_for_the_given_sizes(convolutions: Path) -> None:
    code, out, err = run("inspect", convolutions, "--plan", "--dim", "batch=2", columns=40)
    assert (code, err) == (0, "")
    assert "convolution · depthwise" in out
    assert "Memory at batch=2" in out
    assert max(map(len, out.splitlines())) > 40, "lines are not folded"
    code, out, _ = run("inspect", convolutions, "--plan", "--json")
    assert json.loads(out)["plan"][0].startswith("Plan: 4 steps")


def test_a_dimension_that_the_model_does_not_have(convolutions: Path) -> None:
    code, _, err = run("inspect", convolutions, "--plan", "--dim", "seq=2")
    assert code == 2
    assert "no input has the dimension 'seq'" in err
    assert "batch" in err


def test_profile_and_trace(convolutions: Path, tmp_path: Path) -> None:
    trace = tmp_path / "run.json"
    code, out, _ = run(
        "bench", convolutions, "--trace", trace, "--repeat", "2", "--top", "2", "--threads", "1"
    )
    assert code == 0
    assert "2 more steps" in out
    assert "between steps" in out
    assert "The best of 1 thread here" in out
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 4
    code, out, _ = run("bench", convolutions, "--profile", "--repeat", "1", "--json")
    assert [step["number"] for step in json.loads(out)["steps"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--against", "onnxruntime"], "sardonyx alone"),
        (["--engine", "reference"], "sardonyx alone"),
        (["--trace", "/no/such/folder/t.json"], "folder does not exist"),
    ],
)
def test_what_a_profile_cannot_do(convolutions: Path, more: list[str], message: str) -> None:
    code, _, err = run("bench", convolutions, "--profile", *more)
    assert code == 2
    assert message in err


def profile_of(count: int, name: str = "Relu 'r'") -> Profile:
    steps = tuple(
        ProfiledStep(
            n,
            "native",
            "loops",
            (ProfiledNode(name, "Relu", "net.py:7"),),
            (n + 1) / 1e3,
            0.0,
            0.1,
            10**6,
            10**6,
        )
        for n in range(count)
    )
    return Profile(5, 0.01, 0.001, steps, Limits(2, 1e9, 1e9, 1e9, 1e6), (("batch", 3),))


def shown(profile: Profile, width: int, top: int = 10) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_profile(profile, "net", console, top=top)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_table_fits_any_terminal() -> None:
    for width in (70, 80, 100, 160):
        lines = shown(profile_of(3, "Relu '" + "x" * 500 + "'"), width)
        assert max(map(len, lines)) <= width
    wide, narrow = shown(profile_of(3), 120), shown(profile_of(3), 80)
    assert "█" in "".join(wide)
    assert "█" not in "".join(narrow)


def test_the_slowest_comes_first_with_its_source_line() -> None:
    lines = shown(profile_of(3), 100, top=1)
    assert "net  10 ms a run, median of 5  (batch=3)" in lines[0]
    assert lines[2].split()[:4] == ["2", "loops", "3", "ms"]
    assert "33%" in lines[2], (
        "a million operations in 3 ms, where a thousand million a second are possible"
    )
    assert lines[3].strip() == "net.py:7  Relu 'r'"
    assert "2 more steps" in lines[4]


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-6, "4 µs"), (2e-7, "0.2 µs")]
)
def test_times_have_the_unit_that_suits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_compiling_shows_a_line_until_it_is_done() -> None:
    progress: Any = Progress(console=Console(file=io.StringIO()))
    tell = compiling(progress)
    assert progress.tasks == []
    tell(0, 3)
    tell(2, 3)
    (task,) = progress.tasks
    assert task.description == "compiling 2 of 3"
    assert task.completed == 2
    tell(3, 3)
    assert progress.tasks == []
    tell(0, 1)
    assert len(progress.tasks) == 1, "another model"


def test_nothing_but_the_answer_is_printed_where_nobody_watches(convolutions: Path) -> None:
    _, _, err = run("run", convolutions, "--dim", "batch=1", "--threads", "1")
    assert err == ""
