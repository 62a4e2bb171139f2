"""Rules whose result a runtime runs slower than what stood there before: they are left out for it.

Measured on CPU, by the operator alone in a model: times of the written out form and of the one operator.

onnxruntime 1.31 (Neoverse N1, 2 threads)
    swish               0.23 ms   0.25 ms   its own fusion of the two nodes is as fast as the operator
    attention-with-mask 2.20 ms   3.08 ms   (1, 12, 128, 64); without a mask 2.27 ms and 2.21 ms, of rows 2.34 ms and 2.08 ms
    unrolled-rnn        1.45 ms   6.99 ms   8 steps of 32 rows, 256 inputs and outputs; 16 of one row, of 64, 0.12 ms and 0.07 ms

The same, on a machine that was busy: the least time of 30 runs or more, in turns; of one such race, or of several.
    attention-with-softcap 4.4 to 10 ms    19 to 28 ms     (1, 12, 128, 64), three races
    group-normalization    0.42 ms         1.01 ms         (1, 320, 32, 32), 32 groups, one race
Not left out:
    rms-normalization      0.13 to 0.14 ms 0.10 to 0.18 ms (1, 128, 768), three races: not decided
    rotary-embedding       0.21 ms         0.06 ms         (1, 12, 128, 64) of halves; of pairs 0.84 and 0.07 ms, one race
    instance-normalization 0.25 ms         0.12 ms         (1, 64, 56, 56), one race
    side-by-side           920 ms          920 ms          bert_base, one race
    unrolled-lstm          0.68 ms         0.40 ms         16 steps of 8 rows, 64 inputs and outputs; of one row 0.35 and 0.10 ms; 32 rows of 256, 15.1 and 12.4 ms
    unrolled-gru           0.62 ms         0.33 ms         the same; of one row 0.38 and 0.08 ms; 32 rows of 256, 10.8 and 10.9 ms
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SLOWER"]

SLOWER: Mapping[str, frozenset[str]] = {
    "onnxruntime": frozenset(
        {
            "swish",
            "attention-with-mask",
            "attention-with-softcap",
            "group-normalization",
            "unrolled-rnn",
        }
    )
}
