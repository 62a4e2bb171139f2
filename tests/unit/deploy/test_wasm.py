"""WebAssembly with its loader: node gets a Session's answers, and refusals in words."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.deploy.test_build import feeds, mlp_text

import sardonyx as sx
from sardonyx.errors import BuildError

DOUBLES = """
<ir_version: 10, opset_import: ["": 21]>
doubles (double[n] x, int64[k] i) => (double[n] y, double[n] z, float16[n] half, bool[n] small, int64[k] j)
<double one = {1.0}>
{
    e = Erf(x)
    t = Tanh(e)
    y = Exp(t)
    z = Pow(one, x)
    half = Cast <to = 10> (y)
    small = Less(x, one)
    j = Neg(i)
}
"""
HEAD = """
import { load, ModelError } from "./NAME.js";
const told = [];
const refused = (act) => { try { act(); return "nothing"; } catch (e) { return [e instanceof ModelError, e.code, e.message]; } };
const plain = (out) => Object.fromEntries(Object.entries(out).map(([n, a]) => [n, { shape: a.shape, data: Array.from(a, (v) => (typeof v === "bigint" ? String(v) : v)) }]));
"""


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    sx.build(mlp_text(), folder, emit="wasm", name="mlp")
    return folder


def told_by(node: str, folder: Path, script: str, name: str = "mlp") -> list[Any]:
    """What a script puts into `told`."""
    file = folder / "script.mjs"
    file.write_text(HEAD.replace("NAME", name) + script + "\nconsole.log(JSON.stringify(told));\n")
    done = subprocess.run([node, file], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def literal(array: np.ndarray[Any, Any]) -> str:
    return f"new Float32Array({array.reshape(-1).tolist()})"


def same(answers: dict[str, Any], expected: dict[str, Any]) -> bool:
    assert list(answers) == list(expected)
    return all(
        answer["shape"] == list(right.shape)
        and np.allclose(answer["data"], right.reshape(-1), rtol=1e-5, atol=1e-6)
        for answer, right in zip(answers.values(), expected.values(), strict=True)
    )


def test_it_answers_as_a_session_for_any_batch(node: str, web: Path) -> None:
    batches = (2, 5, 5, 1, 0, 300, 2)
    runs = [
        f"told.push(plain(m.run({{x: {literal(given['x'])}, y: {literal(given['y'])}}})));"
        for given in map(feeds, batches)
    ]
    answers = told_by(node, web, "const m = await load();\n" + "\n".join(runs))
    session = sx.Session(mlp_text())
    for batch, answer in zip(batches, answers, strict=True):
        expected = dict(zip(("z", "total"), session.run(None, feeds(batch)), strict=True))
        assert same(answer, expected)


def test_what_does_not_fit_is_said_in_words(node: str, web: Path) -> None:
    cases = {
        "m.run({x})": ["BAD_ARGUMENT", "nothing was given for the input y"],
        "m.run({x, y: new Float64Array(24)})": [
            "BAD_ARGUMENT",
            "y: Float64Array, where Float32Array was expected",
        ],
        "m.run({x, y, q: x})": ["BAD_ARGUMENT", "there is no input q: there are x, y"],
        "m.run({x, y: y.slice(1)})": [
            "BAD_SHAPE",
            "y: the array has 23 elements, where 2 × 12 were expected",
        ],
        "m.run({x: x.slice(1), y})": [
            "BAD_SHAPE",
            "x: the array has 23 elements, which are no multiple of 12: it is batch × 12",
        ],
        "m.run({x, y}, {bach: 2})": [
            "BAD_ARGUMENT",
            "there is no dimension bach: there are batch",
        ],
        "m.run({x, y}, {batch: -1})": ["BAD_SHAPE", "the dimension batch cannot be -1"],
        "m.run({x: Object.assign(x.slice(), {shape: [12, 2]}), y})": [
            "BAD_SHAPE",
            "input x: a dimension is 2, where 12 was expected",
        ],
        "m.memoryNeeded()": [
            "BAD_SHAPE",
            'the dimension batch is not known: give its size, as in run(inputs, {"batch": 1})',
        ],
    }
    script = "const m = await load(); const x = new Float32Array(24), y = x.slice();\n"
    script += "\n".join(f"told.push(refused(() => {case}));" for case in cases)
    huge = "refused(() => m.run({x, y}, {batch: 2 ** 40}))"
    told = told_by(node, web, f"{script}\ntold.push({huge}, m.run({{x, y}}).z.length);")
    assert told[: len(cases)] == [[True, *case] for case in cases.values()]
    assert told[len(cases)][:2] == [True, "NO_MEMORY"]
    assert told[-1] == 10  # and it goes on working


def test_the_self_test_notices_other_bytes(node: str, tmp_path: Path) -> None:
    sx.build(mlp_text(), tmp_path, emit="wasm", name="mlp", weights="beside")
    script = """
    import { readFile } from "node:fs/promises";
    const bytes = (name) => readFile(new URL(name, import.meta.url));
    const flipped = async (name, at) => { const b = await bytes(name); b[at] ^= 1; return b; };
    told.push(await (await load()).selfTest());
    told.push(await (await load(undefined, await flipped("mlp.weights", 200))).selfTest());
    const code = await flipped("mlp.wasm", (await bytes("mlp.wasm")).length - 5);
    told.push(await load(code).then((m) => m.selfTest(), (e) => e.code));
    told.push(await load(undefined, new Uint8Array(7)).then((m) => refused(() => m.run({x: new Float32Array(12), y: new Float32Array(12)}))));
    told.push(await load(new URL("nowhere.wasm", import.meta.url)).catch((e) => e.code));
    told.push(await load(new Uint8Array(9)).catch((e) => e.code));
    """
    whole, weights, code, alien, missing, rubbish = told_by(node, tmp_path, script)
    assert whole == []
    assert weights == ["mlp.weights"]
    assert code in (["mlp.wasm"], "BAD_CODE")
    assert alien == [True, "BAD_WEIGHTS", "the weights have 7 bytes, where 1408 were expected"]
    assert (missing, rubbish) == ("NOT_FOUND", "BAD_CODE")


def test_functions_of_float64_are_those_of_c(node: str, tmp_path: Path) -> None:
    sx.build(DOUBLES, tmp_path, emit="wasm", name="doubles")
    x = [-1.5, 0.25, 3.0, float("inf"), float("nan")]
    script = """
    const m = await load();
    told.push(plain(m.run({x: new Float64Array([-1.5, 0.25, 3, Infinity, NaN]), i: new BigInt64Array([2n, -(2n ** 60n)])})));
    told.push(await m.selfTest());
    """
    answer, test = told_by(node, tmp_path, script, "doubles")
    session = sx.Session(DOUBLES)
    given = {"x": np.array(x), "i": np.array([2, -(2**60)], np.int64)}
    y, z, half, small, j = map(np.asarray, session.run(None, given))
    np.testing.assert_allclose(np.array(answer["y"]["data"], float)[:4], y[:4], rtol=1e-14)
    assert answer["z"]["data"] == z.tolist() == [1.0] * 5
    assert answer["half"]["data"][:4] == half.view(np.uint16).tolist()[:4]
    assert answer["j"]["data"] == [str(one) for one in j]
    assert answer["small"]["data"] == small.astype(int).tolist()
    assert test == []


def test_types_and_package_name_what_there_is(web: Path) -> None:
    types = (web / "mlp.d.ts").read_text()
    assert '  "x": Float32Array;\n' in types
    assert '  "z": Float32Array & Shaped;\n' in types
    assert '  "batch": number;\n' in types
    package = json.loads((web / "package.json").read_text())
    assert (package["name"], package["version"], package["exports"]) == (
        "mlp",
        "1.0.0",
        "./mlp.js",
    )
    assert (web / "mlp.wasm").stat().st_size < 25_000


def test_another_package_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "mine"}')
    with pytest.raises(BuildError, match="belongs to another package"):
        sx.build(mlp_text(), tmp_path, emit="wasm", name="mlp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["package.json"]
