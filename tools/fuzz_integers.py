"""Generated cases of the integer operators, compiled and run: every answer is that of onnx's own evaluator, to the bit.

python tools/fuzz_integers.py --cases 10000
python tools/fuzz_integers.py --seed 41                 # one form, filled with numbers several times
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for tests.fuzzing

from tests.fuzzing.random_integers import COPIES, check_seed


def main() -> int:
    """Count the cases by operator; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    forms = -(-arguments.cases // COPIES)
    seeds = range(arguments.first, arguments.first + forms)
    if arguments.seed is not None:
        seeds = range(arguments.seed, arguments.seed + 1)
    right: Counter[str] = Counter()
    wrong: list[str] = []
    begin = time.monotonic()
    for seed in seeds:
        try:
            name, found = check_seed(seed)
        except Exception:  # whatever it is, the seed is what a person needs
            name, found = "", [f"seed {seed}: {traceback.format_exc()}"] * COPIES
        right[name] += COPIES - len(found)
        wrong += found
        for line in found[:1]:
            print(line, flush=True)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(right.items()) if name)
    print(f"{sum(right.values())} cases to the bit ({counts}); {len(wrong)} wrong")
    print(f"{time.monotonic() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
