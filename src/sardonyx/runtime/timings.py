"""What was measured on this machine: the seconds of each kernel that could compute a contraction.

    {"cpu": "ARM Neoverse N1", "threads": {"2": {"product f32 1 of 128×768×3072, …":
        {"date": "2026-11-16", "seconds": {"gemm": 0.0101, "gemm 6x12": 0.0098}}}}}

One entry of the cache holds all of one CPU, compiler and set of templates: whoever plans a model reads one
small file, and a template that changed is measured again. What is damaged is as good as never measured.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.backends.c.toolchain import SUPPORT, Cpu, Toolchain
from sardonyx.plan.target import Timings
from sardonyx.runtime.cache import Cache, content_key
from sardonyx.runtime.machine import read_cpu

__all__ = ["Measured", "TimingStore"]

KIND = "timing"


@dataclass(frozen=True)
class Measured:
    """How many problems were measured, over all numbers of threads, and on which day the last one was."""

    problems: int
    newest: str


class TimingStore:
    """The timings of one CPU and compiler, in the cache."""

    def __init__(self, cache: Cache, cpu: Cpu, toolchain: Toolchain) -> None:
        self._cache = cache
        self._model = read_cpu().model
        identity = (self._model, cpu.name, *cpu.flags, toolchain.identity, _digest_of_templates())
        self._key = content_key("kernels", *identity)

    def known(self, threads: int) -> Timings:
        """What was measured with so many threads."""
        entries = self._read().get(str(threads), {})
        return tuple(
            (problem, tuple(entry["seconds"].items())) for problem, entry in entries.items()
        )

    def measured(self) -> Measured:
        """How much is known."""
        entries = [entry for problems in self._read().values() for entry in problems.values()]
        return Measured(len(entries), max((entry["date"] for entry in entries), default=""))

    def remember(self, threads: int, found: Mapping[str, Mapping[str, float]]) -> None:
        """Add what was measured to what others have measured meanwhile."""
        if not found:
            return
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        with self._cache.lock(self._key):
            everything = self._read()
            own = everything.setdefault(str(threads), {})
            for problem, seconds in found.items():
                before = own[problem]["seconds"] if problem in own else {}
                own[problem] = {"date": today, "seconds": _merged(before, seconds)}
            content = {"cpu": self._model, "threads": everything}
            text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            self._cache.replace(KIND, self._key, lambda path: _write(path, text))

    def _read(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By threads, then by problem; only what is as it should be."""
        found = self._cache.read(KIND, self._key)
        if found is None:
            return {}
        try:
            content = json.loads(found)
            return {
                threads: {name: one for name, one in problems.items() if _is_entry(one)}
                for threads, problems in content["threads"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}


def _merged(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """What was measured now, and what only another precision could choose: in proportion, whatever else went on then."""
    common = [now[name] / before[name] for name in now if name in before]
    if not common:
        return dict(now)
    factor = statistics.median(common)
    return {name: seconds * factor for name, seconds in before.items()} | dict(now)


def _is_entry(entry: Any) -> bool:
    seconds = entry.get("seconds") if isinstance(entry, dict) else None
    return (
        isinstance(seconds, dict)
        and isinstance(entry.get("date"), str)
        and all(isinstance(t, float) and math.isfinite(t) and t > 0 for t in seconds.values())
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@functools.cache
def _digest_of_templates() -> str:
    """What the kernels are printed by; the files are read, not imported."""
    folder = SUPPORT.parent
    sources = [folder / "contractions.py", folder / "variants.py"]
    sources += sorted((folder / "kernels").glob("*.py"))
    return content_key(*(source.read_bytes() for source in sources))
