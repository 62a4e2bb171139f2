"""Run by the Python that has Paddle, as a file: it knows nothing of Sardonyx.

python child.py convert MODEL PARAMS FOLDER [OPSET]     writes model.onnx
python child.py run MODEL PARAMS FOLDER                 in-0.npz, in-1.npz, … → out-0.npz, out-1.npz, …
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

_OPSET = 17


def convert(model: str, params: str, folder: Path, opset: int) -> None:
    import paddle2onnx  # type: ignore[import-not-found]

    # Its optimizers would install further packages while they run; ours come later.
    paddle2onnx.export(
        model,
        params,
        str(folder / "model.onnx"),
        opset_version=opset,
        auto_upgrade_opset=False,
        enable_optimize=False,
        optimize_tool="None",
    )


def run(model: str, params: str, folder: Path) -> None:
    from paddle import inference  # type: ignore[import-not-found]

    config = inference.Config(model, params)
    config.disable_gpu()
    config.switch_ir_optim(False)
    predictor: Any = inference.create_predictor(config)
    for index in range(len(list(folder.glob("in-*.npz")))):
        with np.load(folder / f"in-{index}.npz") as feeds:
            for name in predictor.get_input_names():
                predictor.get_input_handle(name).copy_from_cpu(feeds[name])
        predictor.run()
        names = predictor.get_output_names()
        answers = [predictor.get_output_handle(name).copy_to_cpu() for name in names]
        np.savez(folder / f"out-{index}.npz", *answers)


def main() -> None:
    task, model, params, folder, *rest = sys.argv[1:]
    if task == "convert":
        convert(model, params, Path(folder), int(rest[0]) if rest else _OPSET)
    else:
        run(model, params, Path(folder))


if __name__ == "__main__":
    main()
