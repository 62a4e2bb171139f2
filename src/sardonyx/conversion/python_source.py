"""A model that lives in Python source: `net.py:Net`, `net.py:make()`, `package.module:model`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.errors import InputError

__all__ = ["PythonSource", "read_python_source"]

_FORM = re.compile(r"(?P<module>.+):(?P<name>[A-Za-z_][\w.]*)(?P<call>\(\))?")


@dataclass(frozen=True)
class PythonSource:
    """Where the object is; a class, and what is followed by (), is called to get it."""

    module: str
    name: str
    call: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.name}{'()' * self.call}"

    def load(self) -> Any:
        """Import the module and take the object out; this runs the user's own code.

        Raises:
            InputError: there is no such module or name.
        """
        found: Any = self._module()
        for part in self.name.split("."):
            if not hasattr(found, part):
                raise InputError(f"there is no {self.name!r} in it.", where=self.module)
            found = getattr(found, part)
        return found() if self.call or isinstance(found, type) else found

    def _module(self) -> Any:
        if not self.module.endswith(".py"):
            sys.path.insert(0, str(Path.cwd()))
            try:
                return importlib.import_module(self.module)
            except ModuleNotFoundError as error:
                raise InputError(f"it cannot be imported: {error}.", where=self.module) from error
        path = Path(self.module).resolve()
        if not path.is_file():
            raise InputError("there is no such file.", where=self.module)
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module


def read_python_source(text: str) -> PythonSource | None:
    """`net.py:Net` as a place in Python source; None where the text has another form, or is a file that exists."""
    match = _FORM.fullmatch(text)
    if match is None or Path(text).exists():
        return None
    return PythonSource(match["module"], match["name"], bool(match["call"]))
