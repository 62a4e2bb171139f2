"""What an exporter prints, warns and logs is kept, and shown only where it failed."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

__all__ = ["quiet"]


@contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Nothing written to the standard streams through Python inside gets out; what was is in the result."""
    said = io.StringIO()
    level = logging.root.manager.disable
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield said
        finally:
            logging.disable(level)
