"""A local folder as transformers saves it: config.json and safetensors. Nothing is fetched, and no code in it is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedModel

from sardonyx.errors import ConvertError, InputError

__all__ = ["open_folder"]


def open_folder(path: Path) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model of a folder, and options that the folder itself asks for (the pooling of sentence embeddings).

    Raises:
        InputError: the folder is not complete.
        ConvertError: its model is one that transformers does not have, or weights are missing.
    """
    folder = path if path.is_dir() else path.parent
    config = _json(folder / "config.json")
    kind = _class_of(config, folder)
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            "there is no safetensors file in the folder.",
            where=str(folder),
            hint="Save the model again: model.save_pretrained(folder).",
        )
    try:
        loaded: Any = kind.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:  # transformers may raise anything
        text = " ".join(str(error).split())[:300]
        raise InputError(
            f"the model cannot be loaded: {type(error).__name__}: {text}.", where=str(folder)
        ) from error
    model, report = loaded
    missing = sorted(report.get("missing_keys") or ())
    if missing:
        raise ConvertError(
            f"{len(missing)} weights of {kind.__name__} are not in the folder and would be random: "
            f"{', '.join(missing[:3])}.",
            where=str(folder),
            hint="Load the class that the folder was saved from, and convert the object.",
        )
    return model, _pooling(folder)


def _class_of(config: dict[str, Any], folder: Path) -> Any:
    names = config.get("architectures") or []
    for name in names:
        kind = getattr(transformers, str(name), None)
        if isinstance(kind, type) and issubclass(kind, PreTrainedModel):
            return kind
    if not names and config.get("model_type"):
        return transformers.AutoModel
    raise ConvertError(
        f"transformers {transformers.__version__} has no class {', '.join(map(str, names))[:120] or 'for it'}.",
        where=str(folder / "config.json"),
        hint="Load the model with its own code and convert the object: sardonyx.convert(model).",
    )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read: {error}.", where=str(path)) from error


def _pooling(folder: Path) -> dict[str, Any]:
    """What sentence-transformers writes beside a model: how tokens become one vector."""
    if not (folder / "modules.json").is_file():
        return {}
    found: dict[str, Any] = {}
    for module in _json(folder / "modules.json"):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            found["pooling"] = _mode(_json(folder / str(module["path"]) / "config.json"), folder)
        elif kind == "Normalize":
            found["normalize"] = True
        elif kind != "Transformer":
            raise ConvertError(
                f"the folder's modules.json has a {kind}, which is none of Transformer, Pooling and Normalize.",
                where=str(folder / "modules.json"),
            )
    return found


def _mode(config: dict[str, Any], folder: Path) -> str:
    modes = {"mean_tokens": "mean", "cls_token": "cls", "lasttoken": "last"}
    asked = [
        name for name, value in config.items() if name.startswith("pooling_mode_") and value is True
    ]
    known = [modes.get(name.removeprefix("pooling_mode_")) for name in asked]
    if len(known) != 1 or known[0] is None:
        raise ConvertError(
            f"the folder pools by {', '.join(asked) or 'nothing'}; one of {', '.join(modes)} is known.",
            where=str(folder),
            hint='Convert the tokens\' vectors: options={"pooling": None}.',
        )
    return known[0]
