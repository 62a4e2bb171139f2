"""`python -m sardonyx.conversion.worker FOLDER`: one conversion, in a process that may die."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sardonyx.conversion.isolated import serve

__all__ = ["main"]


def main() -> None:
    # What a framework prints, from C++ too, must not look like our own progress.
    ours = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    serve(Path(sys.argv[1]), lambda what: print(what, file=ours, flush=True))


if __name__ == "__main__":
    main()
