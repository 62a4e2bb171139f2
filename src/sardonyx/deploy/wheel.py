"""An artifact as a Python package: a wheel with the shared library inside, typed, over numpy alone.

    import mlp
    logits = mlp.run(x=x)
    mlp.self_test()

The same files are the same bytes: members have one date, one order and one mode.
"""

from __future__ import annotations

import base64
import hashlib
import keyword
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx.deploy.blueprint import Blueprint, PortShape
from sardonyx.deploy.manifest import digest_of_file
from sardonyx.deploy.self_test import SelfTest
from sardonyx.deploy.targets import DeployTarget

__all__ = ["wheel_name", "write_wheel"]

_DATE = (1980, 1, 1, 0, 0, 0)
_PLAIN = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ]
)
_PLATFORMS = {
    ("elf", "x86_64"): "manylinux_2_17_x86_64",
    ("elf", "aarch64"): "manylinux_2_17_aarch64",
    ("elf", "riscv64"): "manylinux_2_31_riscv64",
    ("coff", "x86_64"): "win_amd64",
    ("macho", "aarch64"): "macosx_11_0_arm64",
}


def wheel_name(name: str, version: str, target: DeployTarget) -> str:
    """What pip wants the file to be called."""
    platform = _PLATFORMS[target.form, target.architecture]
    return f"{name}-{version}-py3-none-{platform}.whl"


def write_wheel(
    blueprint: Blueprint,
    test: SelfTest | None,
    target: DeployTarget,
    version: str,
    library: Path,
    others: Sequence[Path],
) -> Path:
    """Put the wheel beside the library.

    Args:
        others: files that lie beside the library in the package: weights that are not inside it.
    """
    name = blueprint.name
    out = library.with_name(wheel_name(name, version, target))
    info = f"{name}-{version}.dist-info"
    digests = {path.name: digest_of_file(path) for path in (library, *others)}
    texts = {
        f"{name}/__init__.py": _module(blueprint, test, library.name, digests),
        f"{name}/_library.py": Path(__file__).with_name("library.py").read_text(encoding="utf-8"),
        f"{name}/py.typed": "",
        f"{info}/METADATA": _metadata(blueprint, version),
        f"{info}/WHEEL": _wheel(out.name),
    }
    files = {f"{name}/{path.name}": path for path in (library, *others)}
    if test is not None:
        path = library.with_name(f"{name}.selftest")
        with path.open("wb") as file:
            test.write(file)
        files[f"{name}/{path.name}"] = path
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        record = _fill(archive, texts, files)
        rows = "".join(f"{member},{digest},{size}\n" for member, digest, size in record)
        _add(archive, f"{info}/RECORD", (rows + f"{info}/RECORD,,\n").encode())
    return out


def _fill(
    archive: zipfile.ZipFile, texts: Mapping[str, str], files: Mapping[str, Path]
) -> list[tuple[str, str, int]]:
    """Write all members; each with its digest and bytes."""
    record = []
    for member, path in sorted(files.items()):
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as source, archive.open(_member(member), "w", force_zip64=True) as to:
            while piece := source.read(1 << 20):
                digest.update(piece)
                size += len(piece)
                to.write(piece)
        record.append((member, _encoded(digest.digest()), size))
    for member, text in sorted(texts.items()):
        content = text.encode()
        _add(archive, member, content)
        record.append((member, _encoded(hashlib.sha256(content).digest()), len(content)))
    return record


def _add(archive: zipfile.ZipFile, member: str, content: bytes) -> None:
    archive.writestr(_member(member), content)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = 0o100644 << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3
    return member


def _encoded(digest: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


# ---------------------------------------------------------------- texts


def _metadata(blueprint: Blueprint, version: str) -> str:
    ports = (*blueprint.inputs, *blueprint.outputs)
    small = any(port.dtype.name not in _PLAIN for port in ports)
    needs = ["numpy>=1.26", *(["ml_dtypes>=0.4"] if small else [])]
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {blueprint.name}",
        f"Version: {version}",
        f"Summary: The model {blueprint.name} as native code",
        "Requires-Python: >=3.10",
        *(f"Requires-Dist: {need}" for need in needs),
    ]
    return "\n".join(lines) + "\n"


def _wheel(name: str) -> str:
    tag = "-".join(name.removesuffix(".whl").split("-")[-3:])
    return f"Wheel-Version: 1.0\nGenerator: sardonyx\nRoot-Is-Purelib: false\nTag: {tag}\n"


def _module(
    blueprint: Blueprint, test: SelfTest | None, library: str, digests: Mapping[str, str]
) -> str:
    """The text of the package's `__init__.py`."""
    name = blueprint.name
    inputs = _python_names(blueprint.inputs, "input")
    outputs = _python_names(blueprint.outputs, "output")
    single = len(outputs) == 1
    arguments = ", ".join(
        f"{one}: {_type(port)}" for one, port in zip(inputs, blueprint.inputs, strict=True)
    )
    taken = f"self, *, {arguments}" if arguments else "self"
    alone = f"*, {arguments}" if arguments else ""
    given = ", ".join(inputs) + ("," if len(inputs) == 1 else "")
    passed = ", ".join(f"{one}={one}" for one in inputs)
    result = _type(blueprint.outputs[0]) if single else "Outputs"
    returned = "results[0]" if single else "Outputs(*results)"
    fields = "\n".join(
        f"    {one}: {_type(port)}  # {_shape(port)}"
        for one, port in zip(outputs, blueprint.outputs, strict=True)
    )
    several = f'\n\nclass Outputs(NamedTuple):\n    """What a run gives."""\n\n{fields}\n'
    described = "\n".join(
        f"    {word} {one}: {port.dtype.name}{_shape(port)}"
        for word, names, ports in (
            ("input", inputs, blueprint.inputs),
            ("output", outputs, blueprint.outputs),
        )
        for one, port in zip(names, ports, strict=True)
    )
    return f'''\
"""The model {name} as native code.

    import {name}
    {name}.run({", ".join(f"{one}=…" for one in inputs)})

{described}
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from {name}._library import Library, LibraryError, agrees

__all__ = ["LibraryError", "Model", {"" if single else '"Outputs", '}"run", "self_test"]

_HERE = Path(__file__).parent
_DIGESTS: dict[str, str] = {digests!r}
_TEST: tuple[tuple[tuple[int, ...], int], ...] = {_offsets(test)}
_TOLERANCES: tuple[tuple[float, float, float], ...] = {_tolerances(test)}
{"" if single else several}

class Model:
    """A context of its own. It serves one call at a time; calls from several threads wait for each other.

    Args:
        threads: that one run works with.
    """

    def __init__(self, threads: int = 1) -> None:
        library = ctypes.CDLL(str(_HERE / "{library}"))
        self._library = Library(library, "{name}", threads=threads, weights=_HERE / "{name}.weights")

    def run({taken}) -> {result}:
        """Run the model once.

        Raises:
            TypeError: an array of another type.
            LibraryError: a shape or a value that the model does not take.
        """
        results = self._run(({given}))
        return {returned}

    def _run(self, values: Sequence[Any]) -> list[NDArray[Any]]:
        ports = self._library.inputs
        arrays = [_array(port.name, port.dtype, one) for port, one in zip(ports, values, strict=True)]
        return self._library.run(arrays)


def run({alone}) -> {result}:
    """As of `Model`, in a context that all who call this share."""
    return _shared().run({passed})


def self_test() -> list[str]:
    """What is not as it was built: files of other bytes, or else outputs of other answers on this machine; none is good."""
    changed = [name for name, digest in _DIGESTS.items() if _digest(_HERE / name) != digest]
    if changed:
        return changed
    model = _shared()
    ports = (*model._library.inputs, *model._library.outputs)
    content = (_HERE / "{name}.selftest").read_bytes() if _TEST else b""
    arrays = [
        np.frombuffer(content, port.dtype, int(np.prod(shape, dtype=np.int64)), offset).reshape(shape)
        for port, (shape, offset) in zip(ports, _TEST, strict=False)
    ]
    count = len(model._library.inputs)
    answers = model._run(arrays[:count]) if _TEST else []
    rows = zip(ports[count:], answers, arrays[count:], _TOLERANCES, strict=False)
    return [port.name for port, answer, expected, bounds in rows if not agrees(answer, expected, *bounds)]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _shared() -> Model:
    return Model()


def _array(name: str, dtype: np.dtype[Any], value: Any) -> NDArray[Any]:
    """What was given as an array of that type; numbers that are no array yet become one."""
    if not isinstance(value, np.ndarray):
        return np.asarray(value, dtype)
    if value.dtype != dtype:
        raise TypeError(f"{{name}}: an array of {{value.dtype}}, where {{dtype}} was expected; convert it: .astype({{str(dtype)!r}})")
    return value
'''


def _python_names(ports: Sequence[PortShape], word: str) -> list[str]:
    """Names of a model's own as Python has them; two are never the same."""
    found: list[str] = []
    for port in ports:
        one = re.sub(r"[^A-Za-z0-9_]", "_", port.name).strip("_") or word
        one = f"{word}_{one}" if one[0].isdigit() else one
        one = f"{one}_" if keyword.iskeyword(one) or one == "self" else one
        number = 2
        while one in found:
            one, number = f"{one.rstrip('0123456789_')}_{number}", number + 1
        found.append(one)
    return found


def _type(port: PortShape) -> str:
    plain = port.dtype.name in _PLAIN
    name = "bool_" if port.dtype.name == "bool" else port.dtype.name
    return f"NDArray[np.{name}]" if plain else "NDArray[Any]"


def _shape(port: PortShape) -> str:
    # A model's own text goes into a program here: what could end a comment does not.
    return re.sub(r"[^A-Za-z0-9_ ,+*/()\[\]-]", "?", f"[{', '.join(map(str, port.shape))}]")


def _offsets(test: SelfTest | None) -> str:
    if test is None:
        return "()"
    arrays = (*test.inputs, *test.outputs)
    rows = [f"({array.shape!r}, {at})" for array, at in zip(arrays, test.offsets, strict=True)]
    return f"({', '.join(rows)},)"


def _tolerances(test: SelfTest | None) -> str:
    if test is None:
        return "()"
    rows = [f"({one.atol!r}, {one.rtol!r}, {one.of_largest!r})" for one in test.tolerances]
    return f"({', '.join(rows)},)"
