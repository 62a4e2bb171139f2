"""Two tree models true to size, trained here and written by the converters that people use.

    >>> path = build("random_forest")
    >>> session.run(None, example_inputs(rows=10_000))

They need what only they need: pip install -e '.[forests]'
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from filelock import FileLock
from numpy.typing import NDArray

__all__ = ["TREES", "build", "example_inputs"]

CACHE = Path(__file__).resolve().parents[1] / "build" / "models"
FEATURES = 20
ROWS_OF_TRAINING = 4000
PACKAGES = ("scikit-learn", "skl2onnx", "xgboost", "onnxmltools")


def example_inputs(*, rows: int, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Seeded feeds, of either model."""
    return {"x": np.random.default_rng(seed).standard_normal((rows, FEATURES), np.float32)}


def build(name: str, *, cache: Path | None = None) -> Path:
    """The model's ONNX file; trained once for each recipe, however many processes ask."""
    if name not in TREES:
        raise ValueError(f"no tree model {name!r}; there are: {', '.join(TREES)}")
    folder = cache or CACHE
    folder.mkdir(parents=True, exist_ok=True)
    path, stamp = folder / f"{name}.onnx", folder / f"{name}.recipe"
    with FileLock(folder / f"{name}.lock"):
        if not (path.exists() and stamp.exists() and stamp.read_text("utf-8") == recipe()):
            stamp.unlink(missing_ok=True)
            unfinished = folder / f"{name}.unfinished"
            onnx.save(tidied(TREES[name]()), unfinished)
            unfinished.replace(path)
            stamp.write_text(recipe(), "utf-8")
    return path


def recipe() -> str:
    """Digest of everything that the model depends on."""
    parts = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    parts.append(Path(__file__).read_text("utf-8"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def random_forest() -> onnx.ModelProto:
    """200 trees of depth 10, three classes."""
    ensembles: Any = importlib.import_module("sklearn.ensemble")
    forest = ensembles.RandomForestClassifier(200, max_depth=10, random_state=0, n_jobs=-1)
    x, score = task()
    forest.fit(x, np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])))
    converter: Any = importlib.import_module("skl2onnx")
    types: Any = importlib.import_module("skl2onnx.common.data_types")
    model: onnx.ModelProto = converter.to_onnx(
        forest,
        initial_types=[("x", types.FloatTensorType([None, FEATURES]))],
        options={"zipmap": False},  # an array of probabilities, not a list of maps
    )
    return model


def boosted() -> onnx.ModelProto:
    """300 trees of depth 6, two classes."""
    xgboost: Any = importlib.import_module("xgboost")
    x, score = task()
    trees = xgboost.XGBClassifier(n_estimators=300, max_depth=6, random_state=0).fit(x, score > 0)
    converter: Any = importlib.import_module("onnxmltools")
    types: Any = importlib.import_module("onnxmltools.convert.common.data_types")
    model: onnx.ModelProto = converter.convert_xgboost(
        trees, initial_types=[("x", types.FloatTensorType([None, FEATURES]))], target_opset=15
    )
    return model


TREES: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "random_forest": random_forest,
    "xgboost": boosted,
}


def task() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features, and a score with products and steps in it, for the trees to find."""
    x = example_inputs(rows=ROWS_OF_TRAINING, seed=1)["x"]
    return x, x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + (x[:, 3] > 0.5) - 0.3


def tidied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Each domain imported once: a converter repeats some, which the specification forbids."""
    versions = {each.domain: each.version for each in model.opset_import}
    del model.opset_import[:]
    for domain, version in versions.items():
        model.opset_import.append(onnx.helper.make_opsetid(domain, version))
    return model
