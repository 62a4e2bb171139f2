"""docs/convert.md, "And back": 25 networks to ONNX by torch, and back to a framework, held to the source.

python -m benchmarks.back make                  export those that build/back does not have
python -m benchmarks.back torch                 what is not correct yet, back to torch: answers, a step of training, a second export
python -m benchmarks.back jax                   (or keras) back to another framework; answers
python -m benchmarks.back coreml                not run, but read back; with the batch fixed where an open one is refused
python -m benchmarks.back models [name …]       the standard set of both exporters, static and open: ONNX → torch → ONNX by `convert`
python -m benchmarks.back table                 write what was found into docs/convert.md
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sardonyx as sx

if TYPE_CHECKING:
    from benchmarks.models import Exporter

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "back"
PAGE = ROOT / "docs" / "convert.md"
MOST = 1e-4


def make() -> None:
    import torch

    from benchmarks.back_models import NETWORKS

    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "names.json").write_text(json.dumps([network.name for network in NETWORKS]))
    for network in NETWORKS:
        if _path(network.name).with_suffix(".npz").exists():
            continue
        torch.manual_seed(0)
        module, inputs = network.make().eval(), network.inputs()
        with torch.no_grad():
            answers = module(*inputs)
        path = _path(network.name)
        shapes = tuple({0: torch.export.Dim("batch", min=2, max=64)} for _ in inputs)
        exported = torch.onnx.export(
            module,
            inputs,
            dynamo=True,
            dynamic_shapes=shapes if network.dynamic else None,
            verbose=False,
        )
        assert exported is not None
        model: Any = exported.model_proto
        arrays = [one.numpy() for one in inputs]
        names = [port.name for port in model.graph.input]
        if network.quantize:
            model = sx.quantize(model, [dict(zip(names, arrays, strict=True))]).model
            answers = tuple(
                torch.from_numpy(one)
                for one in sx.Session(model).run(None, dict(zip(names, arrays, strict=True)))
            )
        sx.save(sx.load(model), path)
        found = answers if isinstance(answers, tuple) else (answers,)
        kept = {f"in{i}": one for i, one in enumerate(arrays)}
        np.savez(
            path.with_suffix(".npz"),
            **kept,
            **{f"out{i}": one.numpy() for i, one in enumerate(found)},
        )
        print(network.name, flush=True)


def _path(name: str) -> Path:
    return FOLDER / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.onnx"


def _data(path: Path) -> tuple[list[Any], list[Any]]:
    arrays = dict(np.load(path.with_suffix(".npz")))
    inputs = [arrays[name] for name in arrays if name.startswith("in")]
    return inputs, [arrays[name] for name in arrays if name.startswith("out")]


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


def _error(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    assert len(found) == len(wanted), f"{len(found)} outputs, {len(wanted)} wanted"
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b), f"shape {np.shape(a)}, {np.shape(b)} wanted"
    return max(
        float(np.abs(np.asarray(a, "f8") - np.asarray(b, "f8")).max())
        for a, b in zip(found, wanted, strict=True)
    )


def by_torch(path: Path) -> str:
    import torch

    inputs, wanted = _data(path)
    module = sx.to_torch(path)
    tensors = tuple(torch.from_numpy(one) for one in inputs)
    with torch.no_grad():
        found = _listed(module(*tensors))
    error = _error([one.numpy() for one in found], wanted)
    _train(module, tensors)
    fresh = sx.to_torch(path)
    exported = torch.onnx.export(fresh, tensors, dynamo=True, verbose=False)
    assert exported is not None
    model = exported.model_proto
    names = [port.name for port in model.graph.input]
    again = sx.Session(model).run(None, dict(zip(names, inputs, strict=True)))
    second = _error(again, wanted)
    assert second <= MOST, f"exported again: {second:.1e}"
    converted = sx.convert(fresh, tensors)
    assert converted.verification is not None
    return f"{error:.1e}"


def _train(module: Any, tensors: tuple[Any, ...]) -> None:
    """One step makes the loss smaller, where there is anything to train."""
    import torch

    parameters = list(module.parameters())
    if not parameters:
        return
    module.train()
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    before = [one.detach().clone() for one in parameters]
    loss = sum(
        (one.float() ** 2).mean() for one in _listed(module(*tensors)) if one.is_floating_point()
    )
    loss.backward()
    optimizer.step()
    assert any(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True)), (
        "nothing is trained"
    )


def by_jax(path: Path) -> str:
    import jax

    inputs, wanted = _data(path)
    function, parameters = sx.to_jax(path)
    error = _error(_listed(jax.jit(function)(parameters, *inputs)), wanted)
    floats = [k for k, one in enumerate(wanted) if one.dtype.kind == "f"]
    if parameters:
        slopes = jax.grad(
            lambda p: sum((_listed(function(p, *inputs))[k] ** 2).sum() for k in floats)
        )(parameters)
        assert all(np.isfinite(one).all() for one in slopes.values()), "the gradient is not finite"
    return f"{error:.1e}"


def by_keras(path: Path) -> str:
    import keras
    from keras import ops

    inputs, wanted = _data(path)
    model = sx.to_keras(path)

    def error(model: Any) -> float:
        found = _listed(model(inputs if len(inputs) > 1 else inputs[0]))
        return _error([ops.convert_to_numpy(one) for one in found], wanted)

    kept = path.with_suffix(".keras")
    first = error(model)
    model.save(kept)
    second = error(keras.models.load_model(kept))
    assert second <= MOST, f"saved and loaded: {second:.1e}"
    return f"{first:.1e}"


def by_coreml(path: Path) -> str:
    inputs, wanted = _data(path)
    kept, how = path.with_suffix(".mlmodel"), ""
    try:
        written = sx.to_coreml(path, file=kept)
    except sx.UnsupportedError:
        written, how = sx.to_coreml(path, file=kept, dims={"batch": len(inputs[0])}), " batch fixed"
    given = [one if one.dtype.kind == "f" else one.astype("int32") for one in inputs]
    names = [port.name for port in written.specification.description.input]
    model = sx.convert(kept, tuple(given), verify=False).model
    found = sx.Session(model).run(None, dict(zip(names, given, strict=True)))
    return f"{_error(found, wanted):.1e}{how}"


WAYS: dict[str, Callable[[Path], str]] = {
    "torch": by_torch,
    "jax": by_jax,
    "keras": by_keras,
    "coreml": by_coreml,
}


def _said(try_out: Callable[..., str], *inputs: Any) -> str:
    """The largest difference, or what went wrong."""
    try:
        return try_out(*inputs)
    except sx.SardonyxError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"**failed**: {type(error).__name__}: {' '.join(str(error).split())[:200]}"


def run(framework: str, only: str) -> None:
    path = FOLDER / f"{framework}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in json.loads((FOLDER / "names.json").read_text()):
        if (only and only not in name) or found.get(name, "-")[0].isdigit():
            continue
        said = _said(WAYS[framework], _path(name))
        if said[0].isdigit() and float(said.split()[0]) > MOST:
            said = f"**wrong**: {said}"
        found[name] = said
        path.write_text(json.dumps(found, indent=1))
        print(f"{framework:6} {name:32} {said}", flush=True)
    correct = sum(said[0].isdigit() for said in found.values())
    print(f"{framework}: {correct} of {len(found)}")


def models(only: Sequence[str]) -> None:
    """The standard set as both exporters write it, static and open: ONNX → torch → ONNX, held to the first."""
    from benchmarks.models import STANDARD

    path = FOLDER / "models.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for dynamic in (False, True):
        for exporter in ("dynamo", "legacy"):
            for name, spec in STANDARD.items():
                kind = f"{'open' if dynamic else 'static'}, {exporter}"
                done = found.get(name, {}).get(kind, "-")[0].isdigit()
                if (dynamic and not spec.dynamic) or (only and name not in only) or done:
                    continue
                said = _said(_around, name, dynamic, exporter)
                found.setdefault(name, {})[kind] = said
                path.write_text(json.dumps(found, indent=1))
                print(f"{name:24} {kind:16} {said}", flush=True)


# What is open is asked for at these sizes.
_SIZES = {"batch": 2, "seq": 24, "height": 96, "width": 128}


def _around(name: str, dynamic: bool, exporter: Exporter) -> str:
    """A model to torch, and by `convert` to ONNX again; the largest difference."""
    import torch

    from benchmarks.models import build, draw, spec_of
    from sardonyx.conversion.convert import convert_model
    from sardonyx.conversion.request import Example, Request

    spec = spec_of(name, dynamic=dynamic)
    path = build(name, dynamic=dynamic, exporter=exporter)
    feeds = draw(spec, _SIZES if dynamic else spec.sizes, seed=1)
    axes = {
        port.name: {k: str(axis) for k, axis in enumerate(port.axes) if axis in spec.dynamic}
        for port in spec.inputs
    }
    request = Request(
        sx.to_torch(path),
        (Example(tuple(torch.from_numpy(one) for one in feeds.values())),),
        axes if dynamic else {},
        output_names=tuple(port.name or "" for port in sx.load(path).graph.outputs),
    )
    again = convert_model(request, engine="onnxruntime").model
    compared = sx.compare(path, again, feeds, engines=["onnxruntime"])
    assert compared.ok, "; ".join(one.reason for one in compared.outputs if not one.ok)
    return f"{max(one.max_abs for one in compared.outputs):.1e}"


def table() -> None:
    found = {
        way: json.loads((FOLDER / f"{way}.json").read_text())
        for way in WAYS
        if (FOLDER / f"{way}.json").exists()
    }
    names = json.loads((FOLDER / "names.json").read_text())
    counts = [
        f"{way} {sum(said[0].isdigit() for said in rows.values())}/{len(rows)}"
        + (" (read back, not run)" if way == "coreml" else "")
        for way, rows in found.items()
    ]
    lines = [
        f"Equal to the source within {MOST:g}: {', '.join(counts)}. The numbers are the largest differences.",
        "",
        f"| network | {' | '.join(found)} |",
        f"|---|{'---|' * len(found)}",
    ]
    for name in names:
        cells = [rows.get(name, "").replace("|", "\\|")[:160] for rows in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    _write("back", lines)
    _write("around", _table_of_models())


def _table_of_models() -> list[str]:
    path = FOLDER / "models.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    kinds = list(dict.fromkeys(kind for row in found.values() for kind in row))
    right = [said[0].isdigit() for row in found.values() for said in row.values()]
    return [
        f"ONNX → torch → ONNX: {sum(right)} of {len(right)} as the source, within the contract. The numbers are the largest differences.",
        "",
        f"| model | {' | '.join(kinds)} |",
        f"|---|{'---|' * len(kinds)}",
        *(
            f"| {name} | {' | '.join(row.get(kind, '')[:160] for kind in kinds)} |"
            for name, row in found.items()
        ),
    ]


def _write(place: str, lines: Sequence[str]) -> None:
    """Between its marks on the page."""
    begin, end = f"<!-- {place}: begin -->", f"<!-- {place}: end -->"
    page, text = PAGE.read_text("utf-8"), "\n".join(lines)
    PAGE.write_text(
        re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL),
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", *WAYS, "models", "table"])
    parser.add_argument("only", nargs="*", help="a network's name, or names of models")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "make":
        make()
    elif given.what == "models":
        models(given.only)
    elif given.what == "table":
        table()
    else:
        run(given.what, " ".join(given.only))


if __name__ == "__main__":
    main()
