"""Every standard model for every target: does it build, how large is its code, and does it answer as a Session does.

    python -m benchmarks.targets                                   all; what was done before is not done again
    python -m benchmarks.targets mlp resnet50 --targets riscv64-linux
    python -m benchmarks.targets --page docs/deploy.md             the table alone, from what was kept

ARM runs on an ARM machine; x86-64 and RISC-V in qemu-user, in a static program (benchmarks/host.c), with inputs as small as the model takes. The others are
built: tests and examples run them. Weights lie beside the archive, so its size is that of the code.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.backends.c.compiler_file import packaged_zig
from sardonyx.deploy.artifact import Artifact
from sardonyx.deploy.manifest import read_self_test
from sardonyx.deploy.self_test import differing
from sardonyx.deploy.targets import TARGETS
from sardonyx.errors import SardonyxError

CACHE = Path(__file__).resolve().parents[1] / "build" / "models"
HOST = Path(__file__).with_name("host.c")
KEPT = CACHE.parent / "targets.json"
BEGIN, END = "<!-- targets: begin -->", "<!-- targets: end -->"

# The file of each model, and sizes that an emulator takes in seconds.
MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "mlp": ("mlp", {}),
    "lstm": ("lstm", {}),
    "mobilenet_v2": ("mobilenet_v2", {}),
    "resnet50": ("resnet50-dynamic", {"batch": 1, "height": 64, "width": 64}),
    "efficientnet_b0": ("efficientnet_b0", {}),
    "vit_b16": ("vit_b16", {}),
    "bert_base": ("bert_base-dynamic", {"batch": 1, "seq": 4}),
    "gpt2": ("gpt2-dynamic", {"batch": 1, "seq": 4}),
    "whisper_tiny_encoder": ("whisper_tiny_encoder", {}),
    "random_forest": ("random_forest", {}),
    "xgboost": ("xgboost", {}),
}
TOO_LONG = frozenset({"vit_b16", "whisper_tiny_encoder"})  # for an emulator
EMULATED = {
    "x86_64-linux": ("x86_64-linux-musl", ["qemu-x86_64", "-cpu", "Haswell"]),
    "riscv64-linux": ("riscv64-linux-musl", ["qemu-riscv64"]),
}
MOST_ON_A_CHIP = 1_000_000  # bytes of weights that a microcontroller has room for
_SECONDS = 600


def try_one(model: str, target: str) -> dict[str, Any]:
    """Build it in a folder of its own and ask it, where something here can run it."""
    file, dims = MODELS[model]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        here = target == "native" or (target == "aarch64-linux" and os.uname().machine == "aarch64")
        try:
            built = sx.build(
                CACHE / f"{file}.onnx",
                folder,
                target=target,
                emit="so" if here else "a",
                name="net",
                weights="beside",
                dims=dims,
                threads=here,
            )
        except SardonyxError as error:
            return {"refused": str(error)}
        found: dict[str, Any] = {"code": built.code_bytes, "weights": built.weights_bytes}
        if target == "cortex-m" and built.weights_bytes > MOST_ON_A_CHIP:
            return {"refused": f"{built.weights_bytes} bytes of weights"}
        if here:
            with Artifact(built.files[0][0]) as artifact:
                found["differs"] = artifact.self_test()
        elif target in EMULATED and model not in TOO_LONG:
            found["differs"] = emulate(folder, target)
        found["seconds"] = round(time.monotonic() - begin, 1)
        return found


def emulate(folder: Path, target: str) -> list[str] | None:
    """The outputs that differ; None where there is no emulator."""
    triple, emulator = EMULATED[target]
    if shutil.which(emulator[0]) is None:
        return None
    program, answers = folder / "host", folder / "answers"
    argv = [packaged_zig(), "cc", "-target", triple, "-static", "-O2", f"-I{folder}"]
    subprocess.run(
        [*argv, "-o", str(program), str(HOST), str(folder / "libnet.a"), "-lm"], check=True
    )
    test = read_self_test(folder / "libnet.a", "net")
    assert test is not None
    given = [str(folder / "net.selftest"), str(answers), str(folder / "net.weights")]
    subprocess.run(
        [*emulator, str(program), *given, *map(str, test.dims)], check=True, timeout=_SECONDS
    )
    content, at, arrays = answers.read_bytes(), 0, []
    for expected in test.outputs:
        arrays.append(np.frombuffer(content, expected.dtype, expected.size, at))
        at += expected.nbytes
    shaped = [one.reshape(right.shape) for one, right in zip(arrays, test.outputs, strict=True)]
    return [str(number) for number in differing(test, shaped)]


def cell(found: dict[str, Any] | None) -> str:
    """One word for people: answers, or that it is built, with the kilobytes of its code."""
    if found is None:
        return ""
    if "refused" in found:
        return "–"
    size = f"{found['code'] / 1024:.0f} KB"
    if found.get("differs") is None:
        return f"built, {size}"
    return f"answers, {size}" if not found["differs"] else f"DIFFERS in {found['differs']}"


def table(results: dict[str, dict[str, Any]]) -> str:
    targets = list(TARGETS)
    lines = ["| model | " + " | ".join(f"`{target}`" for target in targets) + " |"]
    lines.append("|---" * (len(targets) + 1) + "|")
    for model in MODELS:
        cells = [cell(results.get(model, {}).get(target)) for target in targets]
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_page(page: Path, text: str) -> None:
    """Between the two marks of the page."""
    content = page.read_text(encoding="utf-8")
    head, _, rest = content.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", choices=[[], *MODELS], default=[])
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--again", action="store_true", help="also what was done before")
    parser.add_argument("--json", type=Path, default=KEPT, help="where results are kept")
    parser.add_argument(
        "--page", type=Path, help="write the table into this page, and do nothing else"
    )
    arguments = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    if arguments.json.exists():
        results = json.loads(arguments.json.read_text(encoding="utf-8"))
    if arguments.page is not None:
        write_page(arguments.page, table(results))
        return
    for model in arguments.models or MODELS:
        for target in arguments.targets:
            if arguments.again or target not in results.get(model, {}):
                results.setdefault(model, {})[target] = try_one(model, target)
                arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
                print(model, target, cell(results[model][target]), flush=True)


if __name__ == "__main__":
    main()
