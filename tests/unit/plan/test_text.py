"""A plan prints everything that a person asks of it, and the same in every process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.plan.models import TEXTS, plan

from sardonyx.backends.c.contractions import variant_of
from sardonyx.plan.memory import place_slots
from sardonyx.plan.text import plan_text

ROOT = Path(__file__).parents[3]
PRINT_ALL = """
from tests.unit.plan.models import TEXTS, plan
from sardonyx.plan.serialize import plan_to_json
from sardonyx.plan.text import plan_text
for name in TEXTS:
    print(plan_text(plan(name)), plan_to_json(plan(name)))
"""


def test_steps_name_kernels_nodes_buffers_and_places() -> None:
    text = plan_text(plan("convolutions"), {"batch": 2}, variant_of)
    assert text.startswith("Plan: 4 steps, 4 kernels, over batch\n")
    steps = re.split(r"\n(?=  \d)", text)
    assert "copy into another order of axes" in steps[1]
    assert "convolution · direct narrow   3×3, stride 2, 3 → 32   by rule: sizes are" in steps[2]
    assert "Conv '→ a'" in steps[2]
    assert "Relu '→ r'" in steps[2]
    assert re.search(r"reads +x +f32\[batch, 3, 32, 32\] axes 0 2 3 1 +slot 0", steps[2])
    assert re.search(r"reads +w0 +f32 filters packed by 16 +constant 0", steps[2])
    assert "convolution · depthwise   3×3, 32 groups, 32 → 32" in steps[3]
    assert "convolution · direct wide   1×1, 32 → 64" in steps[4]
    assert re.search(r"writes +y +f32\[batch, 64, 16, 16\] +output 0", steps[4])


def test_memory_is_counted_in_bytes_once_sizes_are_given() -> None:
    made = plan("convolutions")
    text = plan_text(made, {"batch": 2})
    image, hidden = 2 * 3 * 32 * 32 * 4, 2 * 32 * 16 * 16 * 4
    assert "Memory at batch=2" in text
    arena = place_slots([(image, 0, 1), (hidden, 1, 2), (hidden, 2, 3)]).bytes
    assert f"arena            {arena:,} bytes in 3 slots" in text
    assert f"alive at once    {max(image + hidden, 2 * hidden):,} bytes" in text
    packed = 4 * (32 * 27 + 32 * 9 + 64 * 32)
    assert f"packed           {packed:,} bytes in 3 constants" in text
    assert "copies           1 step" in text
    assert "arena            3 slots over batch" in plan_text(made)


def test_operands_that_are_packed_beforehand_are_not_read_plain() -> None:
    text = plan_text(plan("dense"), variant_of=variant_of)
    assert "product · gemv   2 × 64 × 32, panels of 16" in text
    assert len(re.findall(r"reads +w ", text)) == 1
    assert "constants        128 bytes" in text


def test_nodes_on_the_reference_backend_have_their_reasons() -> None:
    text = plan_text(plan("mixed"))
    assert "Cast '→ s': elements of type string have no native code" in text
    assert "reference        1   Cast 1" in text
    assert "native           3   Exp 1, Mul 1, Unique 1" in text


def test_names_from_a_stranger_stay_one_line() -> None:
    made = plan("dense")
    evil = made.tensors[0]._replace(name="x\n\x1b[2J" + "y" * 1_000_000)
    text = plan_text(replace(made, tensors=(evil, *made.tensors[1:])))
    assert "\x1b" not in text
    assert r"x\n\x1b[2Jyyy" in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize("name", TEXTS)
def test_every_plan_prints(name: str) -> None:
    assert len(plan_text(plan(name)).splitlines()) > len(plan(name).steps)


def test_two_processes_print_the_same() -> None:
    def print_all(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        command = [sys.executable, "-c", PRINT_ALL]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout

    assert print_all("1") == print_all("271828")
