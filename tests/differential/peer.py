"""Where onnxruntime's answers depend on the CPU; docs/numerics.md has the verdicts."""

from __future__ import annotations

import platform

from sardonyx.backends.cpuinfo import read_cpuinfo

# C leaves open what floats outside of an integer's range become. ARM's instruction saturates, as we do everywhere.
SATURATES_CASTS = platform.machine() in ("aarch64", "arm64")
# Without dot products of bytes, onnxruntime on x86-64 adds products of unsigned with signed bytes in 16 bits, which saturate.
EXACT_BYTES = platform.machine() not in ("x86_64", "AMD64") or not read_cpuinfo().flags.isdisjoint(
    {"avx512_vnni", "avx_vnni"}
)
