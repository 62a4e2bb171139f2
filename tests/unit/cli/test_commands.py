"""The commands, as a user types them: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

from sardonyx.cli import build_app
from sardonyx.cli.precision import Precision
from sardonyx.runtime.chosen import PRECISIONS

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
RELU = HEAD + "g (float[batch, 4] x) => (float[batch, 4] y) { [act] y = Relu (x) }"
LEAKY = RELU.replace("Relu", "LeakyRelu")
LOST = RELU.replace("y = Relu (x)", "y = Relu (x) [lost] z = Neg (x)")
WRONG = RELU.replace("(float[batch, 4] y)", "(float[7, 7] y)")


def run(*arguments: object, columns: int = 120) -> tuple[int, str, str]:
    result = CliRunner().invoke(
        build_app(), [str(a) for a in arguments], env={"COLUMNS": str(columns), "NO_COLOR": "1"}
    )
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert err == ""
    return json.loads(out), code


@pytest.fixture
def save(tmp_path: Path) -> Any:
    def write(text: str, name: str = "model.onnx") -> Path:
        onnx.save(onnx.parser.parse_model(text), tmp_path / name)
        return tmp_path / name

    return write


def test_help_lists_every_command_and_where_to_start() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for command in (
        "inspect",
        "check",
        "run",
        "compare",
        "bench",
        "conformance",
        "doctor",
        "demo",
        "cache",
    ):
        assert f"\n  {command} " in out
    assert "sardonyx demo" in out
    assert run()[:2] == (0, out)


@pytest.mark.parametrize(
    "command",
    ["inspect", "check", "run", "compare", "bench", "conformance", "doctor", "demo", "cache"],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"sardonyx {command}" in out.split("Example", 1)[1]


def test_version() -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("sardonyx 0.")


def test_inspect(save: Any) -> None:
    code, out, _ = run("inspect", save(RELU))
    assert code == 0
    assert "model.onnx" in out
    assert "[batch, 4]" in out
    assert "Relu" in out
    code, out, _ = run("inspect", save(RELU), "--dim", "batch=256", "--nodes")
    assert "[256, 4]" in out
    assert "4.00 KiB" in out


def test_inspect_json(save: Any) -> None:
    data, code = run_json("inspect", save(RELU), "--dim", "batch=2")
    assert code == 0
    assert data["totals"]["bytes_written"] == 32
    assert data["nodes"][0]["name"] == "act"


def test_check_says_ok(save: Any) -> None:
    code, out, _ = run("check", save(RELU))
    assert code == 0
    assert ": ok (0 errors, 0 warnings, 1 info)" in out


def test_check_with_warnings(save: Any) -> None:
    path = save(LOST)
    code, out, _ = run("check", path)
    assert code == 0
    assert "unreachable-node  Neg 'lost'" in out
    assert run("check", path, "--strict")[0] == 1


def test_check_with_errors(save: Any) -> None:
    code, out, _ = run("check", save(WRONG))
    assert code == 1
    assert "not ok (1 error, 0 warnings" in out
    data, code = run_json("check", save(WRONG))
    assert code == 1
    assert data["findings"][0]["rule"] == "contradicted-shape"


def test_check_of_what_does_not_load(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"junk junk junk")
    code, out, err = run("check", bad)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    data, code = run_json("check", bad)
    assert code == 2
    assert data["loaded"] is False


def test_run_with_a_seed(save: Any, tmp_path: Path) -> None:
    output = tmp_path / "out.npz"
    code, out, _ = run("run", save(RELU), "--random", 3, "--dim", "batch=2", "--output", output)
    assert code == 0
    assert "float32" in out
    assert "[2, 4]" in out
    assert "argmax" in out
    with np.load(output) as archive:
        assert archive["y"].shape == (2, 4)
        assert archive["y"].min() >= 0


def test_run_with_inputs(save: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[-1, 5, 2, 3]], np.float32))
    data, code = run_json("run", save(RELU), "--inputs", tmp_path / "x.npy")
    assert code == 0
    (row,) = data["outputs"]
    assert (row["min"], row["max"], row["mean"]) == (0, 5, 2.5)
    assert row["note"] == "argmax 1"


def test_precision(save: Any) -> None:
    path = save(RELU)
    assert set(get_args(get_args(Precision)[0])) == set(PRECISIONS)
    for precision in PRECISIONS:
        assert run("run", path, "--precision", precision)[0] == 0
        assert run("inspect", path, "--plan", "--precision", precision)[0] == 0
    code, _, err = run("run", path, "--precision", "float16")
    assert code == 2
    assert "bfloat16" in err


def test_run_under_bounds(save: Any) -> None:
    path = save(RELU)
    code, _, err = run("run", path, "--byte-budget", "8", "--dim", "batch=100")
    assert code == 2
    assert "budget" in err
    code, _, err = run("run", path, "--deadline", "0")
    assert code == 2
    assert "deadline" in err
    assert run("run", path, "--byte-budget", "1MiB", "--deadline", "60")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dim", "batch"), "is not name=number"),
        (("--dim", "batch=x"), "is not name=number"),
        (("--dim", "nope=3"), "no input has the dimension 'nope'"),
        (("--inputs", "/does/not/exist.npz"), "No such file"),
        (("--byte-budget", "lots"), "is not a number of bytes"),
        (("--nonsense",), "No such option"),
        (("--deadline", "soon"), "Invalid value"),
        (("--output", "/no/such/folder/out.npz"), "its folder does not exist"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    save: Any, arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = run("run", save(RELU), *arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "check", "run", "compare", "bench"])
def test_a_file_that_is_not_there(command: str) -> None:
    code, out, err = run(command, "/does/not/exist.onnx")
    assert (code, out) == (2, "")
    assert "'/does/not/exist.onnx'" in err
    assert err.count("\n") == 1


def test_a_missing_argument_and_a_wrong_command() -> None:
    code, _, err = run("run")
    assert code == 2
    assert err.count("\n") == 1
    code, _, err = run("inspetc", "x.onnx")
    assert code == 2
    assert "inspect" in err


def test_compare(save: Any) -> None:
    first, same, other = save(RELU), save(RELU, "same.onnx"), save(LEAKY, "other.onnx")
    code, out, _ = run("compare", first, same)
    assert code == 0
    assert "They agree" in out
    code, out, _ = run("compare", first, other, "--dim", "batch=3")
    assert code == 1
    assert "They differ in 1 of 1 outputs" in out
    data, code = run_json("compare", first, other, "--atol", "5")
    assert (data["ok"], code) == (True, 0)


def test_compare_engines(save: Any) -> None:
    code, out, _ = run("compare", save(RELU), "--engines", "sardonyx,reference")
    assert code == 0
    assert "onnx.reference" in out
    code, _, err = run("compare", save(RELU), "--engines", "sardonyx,abacus")
    assert code == 2
    assert "no engine 'abacus'" in err


def test_bench(save: Any) -> None:
    data, code = run_json("bench", save(RELU), "--repeat", "2", "--against", "reference")
    assert code == 0
    assert len(data["timings"]) == 2
    assert data["ratio"]["rounds"] == 1
    assert data["machine"]["cpu"]
    code, out, _ = run("bench", save(RELU), "--repeat", "1", "--warmup", "0")
    assert code == 0
    assert "median" in out


def test_bench_tunes(save: Any) -> None:
    data, code = run_json("bench", save(RELU), "--repeat", "1", "--warmup", "0", "--tune")
    assert code == 0
    assert len(data["timings"]) == 1


def test_doctor() -> None:
    data, code = run_json("doctor")
    assert data["cores"]["usable"] >= 1
    assert code == (1 if data["problems"] else 0)
    _, out, _ = run("doctor")
    assert "onnx-ir" in out
    assert data["native"]["isa"] in out


NASTY = "[red]x[/red][link=http://evil] \x1b[31m\n\x00"


def nasty_model(tmp_path: Path) -> Path:
    model = onnx.parser.parse_model(LOST)
    model.producer_name = NASTY
    for node in model.graph.node:
        node.name = NASTY + node.name
        node.output[0] = NASTY if node.op_type == "Relu" else "dead" + NASTY
    model.graph.output[0].name = NASTY
    onnx.save(model, tmp_path / "nasty.onnx")
    return tmp_path / "nasty.onnx"


@pytest.mark.parametrize(
    "command",
    [("inspect", "--nodes"), ("check",), ("run",), ("compare", "--engines", "sardonyx,reference")],
)
def test_names_in_a_model_are_text_and_nothing_else(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    code, out, err = run(command[0], nasty_model(tmp_path), *command[1:], columns=300)
    assert code == 0, err
    assert "[red]x[/red][link=http://evil] \\x1b[31m\\n\\x00" in out
    assert "\x1b" not in out
    assert "\x00" not in out


def test_errors_about_nasty_names_stay_in_one_line(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(RELU.replace("Relu", "Relo"))
    model.graph.node[0].name = NASTY
    onnx.save(model, tmp_path / "nasty.onnx")
    code, _, err = run("run", tmp_path / "nasty.onnx")
    assert code == 2
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert "[red]x[/red]" in err


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_narrow_terminals(save: Any, columns: int) -> None:
    for command in ("inspect", "check", "run", "doctor"):
        arguments = (command,) if command == "doctor" else (command, save(LOST))
        _, out, _ = run(*arguments, columns=columns)
        assert out
        assert max(map(len, out.splitlines())) <= columns


def test_a_defect_of_ours_is_one_line_too(save: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise KeyError("oh dear")

    monkeypatch.setattr("sardonyx.api.inspect", broken)
    code, _, err = run("inspect", save(RELU))
    assert code == 70
    assert err.startswith("defect: KeyError: 'oh dear'")
    assert err.count("\n") == 1
    result = CliRunner().invoke(build_app(), ["--traceback", "inspect", str(save(RELU))])
    assert isinstance(result.exception, KeyError)


def test_interruption_ends_with_130(save: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sardonyx.api.inspect", interrupted)
    assert run("inspect", save(RELU))[0] == 130


def test_the_demo_ends_well() -> None:
    code, out, err = run("demo", columns=80)
    assert (code, err) == (0, "")
    for number in range(1, 9):
        assert f"\n{number}. " in out
    assert "of 180 right" in out
    assert "They agree" in out
    assert "largest difference 0 in" in out
    assert "FormatError" in out
    assert "BudgetError" in out
    assert "Where to look next" in out
    for alarm in ("DIFFER", "NOT", "should not have been", "Yes:"):
        assert alarm not in out
