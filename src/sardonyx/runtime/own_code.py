"""Which Sardonyx this is: names, sizes and dates of its own files, as they were when it was imported.

A kept plan is only good for the code that made it. What a process compiles with is what it imported, so that is the
moment to look; whoever opens a model later need not wait for it. Imports go down only, so no plan depends on what
stands above the runtime.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["ABOVE", "OWN_CODE"]

ABOVE = frozenset(
    ["api", "cli", "comparison", "conversion", "deploy", "inspection", "pruning", "quantization"]
)  # folders


def _digest(root: str) -> str:
    found: list[str] = []
    folders = [root]
    while folders:
        folder = folders.pop()
        aside = ABOVE if folder == root else ()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith((".py", ".h", ".c")):
                    status = entry.stat()
                    found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif "." not in name and name not in aside and name != "__pycache__":
                    folders += [entry.path] * entry.is_dir()
    text = "\n".join(sorted(found))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


OWN_CODE = _digest(str(Path(__file__).parent.parent))
