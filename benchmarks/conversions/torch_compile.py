"""The standard set through `torch.compile(model, backend="sardonyx")`, beside eager torch.

    python -m benchmarks.conversions.torch_compile          # all nine
    python -m benchmarks.conversions.torch_compile mlp lstm

Exits with 1 if a model does not agree, or if any of its graphs ran in torch.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import torch

from benchmarks.models import STANDARD, example_inputs, network
from sardonyx.comparison.difference import Difference, differences
from sardonyx.conversion.torch import compile_backend  # noqa: F401 (registers the backend)
from sardonyx.conversion.torch.arrays import to_array
from sardonyx.conversion.torch.structure import answers_of

__all__ = ["compare_compiled"]


def compare_compiled(name: str) -> list[Difference]:
    """A model of the standard set, compiled and eager, on the same inputs.

    Raises:
        RuntimeWarning: a graph of it was left to torch.
    """
    torch._dynamo.reset()
    model = network(name).eval()
    inputs = [torch.from_numpy(array) for array in example_inputs(name, seed=1).values()]
    compiled = torch.compile(model, backend="sardonyx")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="sardonyx:", category=RuntimeWarning)
        names, expected = answers_of(model(*inputs))
        compiled(*inputs)
        _, found = answers_of(compiled(*inputs))  # the first call is checked; this one is not
    rows = zip(names, found, expected, strict=True)
    return [d for n, ours, theirs in rows for d in differences(n, to_array(ours), to_array(theirs))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(STANDARD)}")
    names = parser.parse_args().names or list(STANDARD)
    wrong = 0
    for name in names:
        begin = time.perf_counter()
        try:
            found = compare_compiled(name)
            ok = all(difference.ok for difference in found)
            told = f"max abs {max(d.max_abs for d in found):.2g} in {len(found)} outputs"
        except RuntimeWarning as warning:
            ok, told = False, str(warning)
        wrong += not ok
        seconds = time.perf_counter() - begin
        print(f"{name:22} {'agrees' if ok else 'DIFFERS'}  {told}  ({seconds:.0f} s)", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
