"""Artifacts answer as a Session does, from Python and from a C program, and refuse what does not fit."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.deploy.artifact import Artifact
from sardonyx.deploy.names import c_identifier, c_text, distinct_identifiers
from sardonyx.errors import BuildError, InputError, RunError

MLP = """
<ir_version: 10, opset_import: ["": 21]>
mlp (float[batch, 12] x, float[batch, 12] y) => (float[batch, 5] z, float[batch, 12] total)
<float[12, 16] w = {WEIGHTS}, float[5] b = {0.5, -1.0, 2.0, 0.25, 0.0}, float[16, 5] v = {MORE}>
{
    total = Add(x, y)
    h = MatMul(total, w)
    r = Relu(h)
    p = MatMul(r, v)
    z = Add(p, b)
}
"""

INDEXED = """
<ir_version: 10, opset_import: ["": 21]>
pick (float[n, 4] table, int64[k] rows) => (float[k, 4] picked)
{
    picked = Gather <axis = 0> (table, rows)
}
"""

LOOP = """
<ir_version: 10, opset_import: ["": 21]>
powers (float[n] x, int64[1] turns) => (float[n] y)
<int64[1] axis = {0}>
{
    count = Squeeze(turns, axis)
    yes = Constant <value = bool {1}> ()
    y = Loop (count, yes, x) <body = twice (int64 i, bool go, float[n] before) => (bool on, float[n] after) {
        on = Identity(go)
        after = Add(before, before)
    }>
}
"""

HOST = r"""
#include <stdio.h>
#include "mlp.h"

int main(void) {
    float x[24], y[24], z[10], total[24];
    for (int i = 0; i < 24; i++) x[i] = (float)i / 8, y[i] = 1 - (float)i / 4;
    const int64_t dims[MLP_DIMS] = {2};
    sardonyx_buffer inputs[MLP_INPUTS] = {{x, sizeof x}, {y, sizeof y}};
    sardonyx_buffer outputs[MLP_OUTPUTS] = {{z, sizeof z}, {total, sizeof total}};
    mlp_context *context;
    sardonyx_error error;
    if (mlp_open(&context, NULL, &error) || mlp_run(context, dims, inputs, outputs, &error)) {
        puts(error.text);
        return 1;
    }
    for (int i = 0; i < 10; i++) printf("%a\n", z[i]);
    inputs[0].bytes -= 4;
    const int32_t code = mlp_run(context, dims, inputs, outputs, &error);
    printf("%d %s\n", code, error.text);
    mlp_close(context);
    return 0;
}
"""


def mlp_text() -> str:
    numbers = np.random.default_rng(0).standard_normal(12 * 16 + 16 * 5).astype(np.float32)
    texts = [repr(float(number)) for number in numbers]
    return MLP.replace("WEIGHTS", ", ".join(texts[:192])).replace("MORE", ", ".join(texts[192:]))


def built(folder: Path, text: str, name: str, **options: Any) -> Path:
    return sx.build(text, folder, name=name, **options).files[0][0]


def feeds(batch: int) -> dict[str, Any]:
    x = np.arange(batch * 12, dtype=np.float32).reshape(batch, 12) / 8
    return {"x": x, "y": 1 - 2 * x}


@pytest.fixture(scope="module")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("mlp"), mlp_text(), "mlp")


def same(one: np.ndarray[Any, Any], other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and bool(np.all(one == other))


def all_same(ones: list[Any], others: list[Any]) -> bool:
    return all(same(one, other) for one, other in zip(ones, others, strict=True))


def test_it_answers_as_a_session_for_any_batch(mlp: Path) -> None:
    session = sx.Session(mlp_text())
    with Artifact(mlp) as artifact:
        for batch in (1, 5, 2, 64, 0):
            answers = artifact.run(None, feeds(batch))
            expected = session.run(None, feeds(batch))
            assert all_same(answers, expected)


def test_a_c_program_prints_the_same_answers(mlp: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler of the system's own")
    static = built(tmp_path, mlp_text(), "mlp", emit="a")
    source = tmp_path / "host.c"
    source.write_text(HOST)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    expected = sx.Session(mlp_text()).run(["z"], feeds(2))[0]
    assert isinstance(expected, np.ndarray)
    for library in (static, mlp):
        program = tmp_path / f"host-{library.suffix[1:]}"
        include = f"-I{library.parent}"
        argv = [compiler, *flags, include, str(source), str(library), "-lm", "-o", str(program)]
        subprocess.run([*argv, f"-Wl,-rpath,{library.parent}"], check=True)
        lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        *numbers, refusal = lines.splitlines()
        assert [float.fromhex(number) for number in numbers] == expected.reshape(-1).tolist()
        assert refusal == "16 x: the buffer has 92 bytes, where 96 were expected"


def test_what_it_takes_and_gives_is_known(mlp: Path) -> None:
    with Artifact(mlp) as artifact:
        assert [str(port) for port in artifact.inputs] == [
            "x: float32[batch, 12]",
            "y: float32[batch, 12]",
        ]
        assert [str(port) for port in artifact.outputs] == [
            "z: float32[batch, 5]",
            "total: float32[batch, 12]",
        ]
        assert artifact.dims == ("batch",)


def test_shapes_that_do_not_fit_are_named(mlp: Path) -> None:
    with Artifact(mlp) as artifact:
        with pytest.raises(InputError, match="input x: a dimension is 11, where 12 was expected"):
            artifact.bind([(1, 11)])
        with pytest.raises(InputError, match="input y: a dimension is 3, where 2 was expected"):
            artifact.bind([(2, 12), (3, 12)])
        with pytest.raises(InputError, match="input x has 2 dimensions, not 3"):
            artifact.bind([(1, 1, 12)])
        with pytest.raises(InputError, match="past 64 bits"):
            artifact.memory_needed([2**60])
        with pytest.raises(InputError, match="the dimension batch cannot be -3"):
            artifact.memory_needed([-3])


def test_memory_is_known_exactly_and_enough(mlp: Path) -> None:
    with Artifact(mlp, fixed_memory=[8]) as artifact:
        assert artifact.memory_needed([8]) < artifact.memory_needed([9])
        expected = sx.Session(mlp_text()).run(None, feeds(8))
        assert all_same(artifact.run(None, feeds(8)), expected)
        with pytest.raises(RunError, match="the run needs an arena of"):
            artifact.run(None, feeds(9))
        assert all_same(artifact.run(None, feeds(8)), expected)


def test_contexts_run_at_once_in_threads(mlp: Path) -> None:
    expected = sx.Session(mlp_text()).run(None, feeds(64))
    right: list[bool] = []

    def work() -> None:
        with Artifact(mlp, threads=2) as artifact:
            right.extend(all_same(artifact.run(None, feeds(64)), expected) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 100
    assert all(right)


def test_weights_may_lie_beside_it_and_must_be_its_own(mlp: Path, tmp_path: Path) -> None:
    library = built(tmp_path, mlp_text(), "mlp", weights="beside")
    blob = tmp_path / "mlp.weights"
    assert library.stat().st_size < mlp.stat().st_size
    with Artifact(library) as artifact:
        expected = sx.Session(mlp_text()).run(None, feeds(3))
        assert all_same(artifact.run(None, feeds(3)), expected)
    content = bytearray(blob.read_bytes())
    content[40] ^= 1
    blob.write_bytes(content)
    with pytest.raises(RunError, match="the weights of another model"):
        Artifact(library)
    blob.unlink()
    with pytest.raises(RunError, match="has none of its own"):
        Artifact(library)


def test_two_builds_are_the_same_bytes(mlp: Path, tmp_path: Path) -> None:
    for emit in ("so", "a"):
        one = built(tmp_path / "one", mlp_text(), "mlp", emit=emit)
        other = built(tmp_path / "other place", mlp_text(), "mlp", emit=emit)
        assert one.read_bytes() == other.read_bytes()


def test_values_without_an_answer_are_named(tmp_path: Path) -> None:
    with Artifact(built(tmp_path, INDEXED, "pick")) as artifact:
        table = np.arange(12, dtype=np.float32).reshape(3, 4)
        given = {"table": table, "rows": np.array([2, -3], np.int64)}
        (picked,) = artifact.run(None, given)
        assert same(picked, table[[2, 0]])
        with pytest.raises(RunError, match=r"Gather.* 7"):
            artifact.run(None, {"table": table, "rows": np.array([7], np.int64)})


def test_loops_run(tmp_path: Path) -> None:
    with Artifact(built(tmp_path, LOOP, "powers")) as artifact:
        x = np.array([1, -2, 0.5], np.float32)
        for turns in (0, 1, 10):
            (y,) = artifact.run(None, {"x": x, "turns": np.array([turns], np.int64)})
            assert same(y, x * np.float32(2**turns))


def test_what_needs_python_is_refused_with_its_nodes(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["": 21]>
    found (float[n] x) => (int64[1, m] where) { where = NonZero(x) }
    """
    with pytest.raises(BuildError, match=r"known only while the model runs|depends on the data"):
        sx.build(text, tmp_path)
    strings = """
    <ir_version: 10, opset_import: ["": 21]>
    upper (string[n] x) => (string[n] y) { y = StringNormalizer <case_change_action = "UPPER"> (x) }
    """
    with pytest.raises(BuildError, match="StringNormalizer"):
        sx.build(strings, tmp_path)


def test_bad_requests_are_explained(tmp_path: Path) -> None:
    for options, message in (
        ({"target": "pdp11"}, "there is no target 'pdp11'"),
        ({"emit": "coffee"}, "nothing called 'coffee' to emit"),
        ({"target": "cortex-m", "emit": "so"}, "'so' cannot be made for cortex-m"),
        ({"dims": {"bach": 2}}, "no input has the dimension 'bach'"),
    ):
        with pytest.raises(BuildError, match=message):
            sx.build(mlp_text(), tmp_path, **options)  # type: ignore[arg-type]
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(BuildError, match="cannot be written to"):
        sx.build(mlp_text(), occupied)


def test_names_become_identifiers() -> None:
    assert c_identifier("my-net.v2") == "my_net_v2"
    assert c_identifier("3d") == "model_3d"
    assert c_identifier("int") == "model_int"
    assert c_identifier("猫") == "model"
    assert distinct_identifiers(["a.b", "a_b", "c"], "X") == ["A_B", "A_B_2", "C"]
    assert c_text('a"\\\n?7') == '"a\\042\\134\\012\\0777"'
