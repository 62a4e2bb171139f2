"""The frameworks that a model may come from: how each is recognised, and where its frontend lives.

Nothing here imports a framework: objects are recognised by the module that their class comes from, files by
their name, and a frontend is imported when it is needed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.conversion.candidate import Route
from sardonyx.conversion.request import Request
from sardonyx.errors import ConvertError, InputError, MissingExtraError

__all__ = ["FRONTENDS", "Frontend", "find_frontend"]

Routes: TypeAlias = Callable[[Request], Sequence[Route]]


@dataclass(frozen=True)
class Frontend:
    """One framework.

    Attributes:
        name: as users say it.
        distribution: whose version matters.
        extra: of our own package, that installs what is needed.
        tested: the versions that the tests run with.
        module: of ours, with a function `routes(request)`.
        packages: classes from these are its models.
        files: name endings of its files; a folder is one that holds such a file.
    """

    name: str
    distribution: str
    extra: str
    tested: str
    module: str
    packages: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def version(self) -> str | None:
        """Of the installed distribution; None where there is none."""
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
    Frontend("torch", "torch", "torch", "2.13", _TORCH, ("torch",), (".pt", ".pth", ".pt2", ".ts")),
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
)


def find_frontend(source: Any, framework: str | None = None) -> Frontend:
    """The frontend for an object or a path.

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
    homes = [base.__module__.partition(".")[0] for base in type(source).__mro__]
    for frontend in FRONTENDS:
        if any(home in frontend.packages for home in homes):
            return frontend
    if callable(source):
        return next(frontend for frontend in FRONTENDS if frontend.name == "torch")
    raise ConvertError(
        f"a {type(source).__module__}.{type(source).__qualname__} is no model of a framework that is known.",
        value=source,
        hint="`sardonyx convert --list` shows them; name one with framework=….",
    )


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
