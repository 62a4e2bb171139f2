"""Which compiled form of a file a session opens: the one whose kernels were measured, where there is one.

    timing/<file, threads, sizes>  →  {"choices": digest of what was chosen and why, "tuned": true}

A form with measured kernels is kept beside the one by rule, under a key that its choices are part of; this small entry
says which it is. What was kept wins over what was measured since: opening it plans nothing. Tuning a model, or
`sardonyx cache clear --kind timing`, is how its choices change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from sardonyx.plan.plan import Plan
from sardonyx.runtime.cache import Cache, content_key

__all__ = ["PRECISIONS", "Choosing", "Precision", "chosen_key", "keep_choices"]

KIND = "timing"

Precision = Literal["strict", "float32", "fast", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


@dataclass(frozen=True)
class Choosing:
    """How kernels are chosen.

    Attributes:
        threads: how many one run may use; what was measured with others does not count.
        sizes: what symbols are expected to be; kernels of unknown sizes are chosen by rule.
        tune: measure what this machine has not measured yet.
        precision: "strict" leaves only kernels whose operations are those of the definition, in a fixed order; "fast" and
            "bfloat16" allow some that lose more than float32 does (docs/numerics.md).
    """

    threads: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    tune: bool = False
    precision: Precision = "float32"


def chosen_key(cache: Cache, key: str, choosing: Choosing) -> str | None:
    """The key of the form to open, from the key of the file; None where it is yet to be tuned."""
    found = cache.read(KIND, _key(key, choosing))
    try:
        content = {} if found is None else json.loads(found)
        choices, tuned = str(content.get("choices", "")), content.get("tuned") is True
    except (ValueError, AttributeError):
        choices, tuned = "", False
    if choosing.tune and not tuned:
        return None
    return content_key("chosen", key, choices) if choices else key


def keep_choices(cache: Cache, key: str, choosing: Choosing, plan: Plan) -> str:
    """Remember what was chosen for a file, and say under which key its form is kept."""
    from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel

    choices = [
        kernel.choice
        for kernel in plan.kernels
        if isinstance(kernel, (ProductKernel, ConvolutionKernel))
    ]
    measured = any(choice.measured for choice in choices)
    digest = content_key(*map(repr, choices)) if measured else ""
    if measured or choosing.tune:
        text = json.dumps({"choices": digest, "tuned": choosing.tune})
        own = _key(key, choosing)
        with cache.lock(own):
            cache.replace(KIND, own, lambda path: _write(path, text))
    return content_key("chosen", key, digest) if digest else key


def _key(key: str, choosing: Choosing) -> str:
    return content_key("choices", key, str(choosing.threads), repr(sorted(choosing.sizes.items())))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
