"""Generated graphs through the optimizer, until the budget is used up: no answer may change, nothing may crash.

    python tools/fuzz_optimizer.py --graphs 100000          # `make fuzz-optimizer`; 30 minutes on two cores
    python tools/fuzz_optimizer.py --seed 1896              # one graph: which rule, and the smallest model

Half of the graphs go through all rules together, half through one rule alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for tests.fuzzing

from tests.fuzzing.check_optimizer import alone, check_seed
from tests.fuzzing.random_graphs import random_feeds, random_model

from sardonyx.passes.optimize import Settings


def check(seed: int) -> tuple[int, str | None]:
    """A seed and what is wrong with it."""
    warnings.simplefilter("ignore")
    try:
        return seed, check_seed(seed, alone(seed) if seed % 2 else Settings(level=3))
    except Exception:  # whatever it is, the seed is what a person needs
        return seed, traceback.format_exc()


def explain(seed: int) -> None:
    """Name the rule that is to blame for one graph, and print the smallest model."""
    import onnx

    import sardonyx
    from sardonyx.comparison.proof import find_culprit
    from sardonyx.model.save import to_proto
    from sardonyx.runtime.folding import fold_node

    model = sardonyx.load(random_model(seed))
    for what, settings in (("all rules", Settings(level=3)), ("one rule alone", alone(seed))):
        found = find_culprit(model, settings, random_feeds(seed), evaluate=fold_node)
        print(f"{what}: {found or 'the answers agree within the contract'}")
        if found is None:
            continue
        print(onnx.printer.to_text(to_proto(found.model)))
        print(dict(found.feeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="look at one graph")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        explain(arguments.seed)
        return
    seeds = range(arguments.first, arguments.first + arguments.graphs)
    wrong = 0
    with multiprocessing.Pool() as pool:
        for done, (seed, reason) in enumerate(pool.imap_unordered(check, seeds, chunksize=50), 1):
            if reason is not None:
                wrong += 1
                print(f"seed {seed}: {reason}", flush=True)
            if done % 5000 == 0:
                print(f"{done:,} of {len(seeds):,} graphs, {wrong} wrong", flush=True)
    print(f"{len(seeds):,} graphs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
