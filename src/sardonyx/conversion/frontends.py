"""The frameworks that a model may come from: how each is recognised, and where its frontend lives.

Nothing here imports a framework: objects are recognised by the module that their class comes from, files by
their name, and a frontend is imported when it is needed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.conversion.candidate import Route
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError, MissingExtraError

__all__ = ["FRONTENDS", "Frontend", "find_frontend"]

Routes: TypeAlias = Callable[[Request], Sequence[Route]]

_DEEPEST = 3  # functions that a function names


@dataclass(frozen=True)
class Frontend:
    """One framework.

    Attributes:
        name: as users say it.
        distribution: whose version matters; "" where our own reader needs no other.
        extra: of our own package, that installs what is needed.
        tested: the versions that the tests run with.
        module: of ours, with a function `routes(request)`.
        packages: classes from these are its models.
        files: name endings of its files; a folder is one that holds such a file.
        instead: of a version, what is told where there is no distribution.
    """

    name: str
    distribution: str
    extra: str
    tested: str
    module: str
    packages: tuple[str, ...]
    files: tuple[str, ...] = ()
    instead: str = "built in"

    @property
    def version(self) -> str | None:
        """Of the installed distribution; None where there is none."""
        if not self.distribution:
            return self.instead
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def load(self) -> Routes:
        """The frontend itself.

        Raises:
            MissingExtraError: the framework is not installed.
        """
        if self.version is None:
            raise MissingExtraError(
                f"{self.distribution} is not installed.",
                hint=f'Run: pip install "sardonyx[{self.extra}]"',
            )
        routes: Routes = importlib.import_module(self.module).routes
        return routes


_TORCH = "sardonyx.conversion.torch.frontend"
_TENSORFLOW = "sardonyx.conversion.tensorflow.frontend"
_TREES = "sardonyx.conversion.trees.frontend"

# The first that recognises a model takes it: what is built on another framework stands before it.
FRONTENDS: tuple[Frontend, ...] = (
    Frontend(
        "huggingface",
        "transformers",
        "huggingface",
        "5.22",
        "sardonyx.conversion.huggingface.frontend",
        ("transformers",),
        ("config.json",),
    ),
    Frontend("keras", "keras", "tensorflow", "3.15", _TENSORFLOW, ("keras",), (".keras", ".h5")),
    Frontend(
        "tensorflow",
        "tensorflow",
        "tensorflow",
        "2.21",
        _TENSORFLOW,
        ("tensorflow",),
        ("saved_model.pb",),
    ),
    Frontend("torch", "torch", "torch", "2.13", _TORCH, ("torch",), (".pt", ".pth", ".pt2", ".ts")),
    Frontend(
        "mxnet",
        "",
        "",
        "its files alone",
        "sardonyx.conversion.mxnet.frontend",
        ("mxnet",),
        ("-symbol.json",),
    ),
    Frontend(
        "caffe2",
        "",
        "",
        "its files alone",
        "sardonyx.conversion.caffe2.frontend",
        ("caffe2",),
        ("predict_net.pb",),
    ),
    Frontend(
        "coreml",
        "coremltools",
        "coreml",
        "9.0, its files alone",
        "sardonyx.conversion.coreml.frontend",
        ("coremltools",),
        (".mlmodel",),
    ),
    Frontend(
        "paddle",
        "",
        "",
        "3.2",
        "sardonyx.conversion.paddle.frontend",
        ("paddle",),
        ("inference.json", "inference.pdmodel", ".pdmodel"),
        instead="elsewhere",
    ),
    Frontend("xgboost", "xgboost", "trees", "3.2", _TREES, ("xgboost",), (".ubj", ".json")),
    Frontend("lightgbm", "lightgbm", "trees", "4.7", _TREES, ("lightgbm",), (".txt",)),
    Frontend("catboost", "catboost", "trees", "1.2", _TREES, ("catboost",), (".cbm",)),
    Frontend(
        "sklearn",
        "scikit-learn",
        "sklearn",
        "1.9",
        "sardonyx.conversion.sklearn.frontend",
        ("sklearn", "imblearn"),
        (".joblib", ".pkl", ".pickle", ".skops"),
    ),
    Frontend(
        "jax",
        "jax",
        "jax",
        "0.10",
        "sardonyx.conversion.jax.frontend",
        ("jax", "jaxlib", "flax", "equinox"),
    ),
    Frontend(
        "tflite",
        "",  # only the proof of the result needs LiteRT or TensorFlow
        "tflite",
        "LiteRT 2.3",
        "sardonyx.conversion.tflite.frontend",
        (),
        (".tflite", ".lite"),
    ),
)


def find_frontend(
    source: Any, framework: str | None = None, examples: Sequence[Example] = ()
) -> Frontend:
    """The frontend for an object or a path; a function is that of its arrays, or of the libraries that it names.

    Raises:
        InputError: there is no such framework, or no such file.
        ConvertError: no framework recognises the object.
    """
    if framework is not None:
        for frontend in FRONTENDS:
            if frontend.name == framework:
                return frontend
        raise InputError(
            f"there is no framework {framework[:80]!r}.",
            value=framework,
            hint=f"There are: {', '.join(frontend.name for frontend in FRONTENDS)}.",
        )
    if isinstance(source, Path):
        return _by_file(source)
    found = _by_homes(_homes(source))
    if found is not None:
        return found
    if callable(source):
        return _by_function(source, examples)
    raise ConvertError(
        f"a {type(source).__module__}.{type(source).__qualname__} is no model of a framework that is known.",
        value=source,
        hint="`sardonyx convert --list` shows them; name one with framework=….",
    )


def _homes(value: Any) -> list[str]:
    """The packages that a value's class is made from; a module and a function are of their own."""
    named = [base.__module__ for base in type(value).__mro__]
    if isinstance(value, types.ModuleType):
        named.append(value.__name__)
    elif inspect.isroutine(value):
        named.append(value.__module__ or "")
    return [name.partition(".")[0] for name in named]


def _by_homes(homes: Sequence[str]) -> Frontend | None:
    for frontend in FRONTENDS:
        if any(home in frontend.packages for home in homes):
            return frontend
    return None


def _by_function(function: Any, examples: Sequence[Example]) -> Frontend:
    """Arrays of a framework decide; then what the function's own source names; torch takes the rest."""
    given = [value for example in examples for value in (*example.args, *example.kwargs.values())]
    for value in _flat(given):
        found = _by_homes(_homes(value))
        if found is not None:
            return found
    for value in _named_by(function, 0):
        found = _by_homes(_homes(value))
        if found is not None:
            return found
    return next(frontend for frontend in FRONTENDS if frontend.name == "torch")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _named_by(function: Any, depth: int) -> list[Any]:
    """What a function refers to: arguments given before, its object, its closure, and globals that it names."""
    if depth > _DEEPEST:
        return []
    if isinstance(function, functools.partial):
        given = _flat([*function.args, *function.keywords.values()])
        return [*given, function.func, *_named_by(function.func, depth + 1)]
    inner = getattr(function, "__wrapped__", None)
    found = [] if inner is None else [inner, *_named_by(inner, depth + 1)]
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return found
    cells = [cell.cell_contents for cell in plain.__closure__ or () if _is_filled(cell)]
    names = [plain.__globals__[name] for name in code.co_names if name in plain.__globals__]
    owner = getattr(function, "__self__", None)
    own = [owner, *_flat(cells), *names]
    functions = [value for value in own if inspect.isfunction(value)]
    return [*found, *own, *(v for f in functions for v in _named_by(f, depth + 1))]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _by_file(path: Path) -> Frontend:
    if not path.exists():
        raise InputError("there is no such file or folder.", where=str(path), value=path)
    for frontend in FRONTENDS:
        for ending in frontend.files:
            if (path / ending).is_file() if path.is_dir() else path.name.endswith(ending):
                return frontend
    known = sorted({ending for frontend in FRONTENDS for ending in frontend.files})
    raise InputError(
        "the file's name says nothing of its framework.",
        where=str(path),
        hint=f"Name it with --framework. Endings that are known: {', '.join(known)}.",
    )
