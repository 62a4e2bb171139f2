"""Files of TensorFlow and Keras: .keras, .h5, and SavedModel folders. What runs code of its own is refused unless trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sardonyx.conversion.request import Request
from sardonyx.errors import InputError

__all__ = ["open_file"]

# Operators of a graph that reach out of it: Python's own code, and files.
_REACHING = frozenset(
    {"PyFunc", "PyFuncStateless", "EagerPyFunc", "ReadFile", "WriteFile", "MatchingFiles"}
)


def open_file(request: Request) -> Any:
    """The model in a file or folder. Option: `trust`, to run code that it brings along.

    Raises:
        InputError: it is damaged or none, or brings code along and is not trusted.
    """
    path = request.path
    assert path is not None
    trust = bool(request.option("trust"))
    return _saved_model(path, trust) if path.is_dir() else _keras_file(path, trust)


def _keras_file(path: Path, trust: bool) -> Any:
    import keras

    try:
        return keras.saving.load_model(path, compile=False, safe_mode=not trust)
    except Exception as error:  # Keras may raise anything
        text = " ".join(str(error).split())
        if not trust and ("safe_mode" in text or "Lambda" in text):
            raise _untrusted(path, "a Lambda layer, whose Python code would be run") from None
        raise InputError(
            f"Keras cannot read the file: {text[:300]}.",
            where=str(path),
            hint="A layer of your own must be registered: name the code instead, as net.py:make().",
        ) from error


def _saved_model(path: Path, trust: bool) -> Any:
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    held = saved_model_pb2.SavedModel()
    try:
        held.ParseFromString((path / "saved_model.pb").read_bytes())
    except Exception as error:
        raise InputError(f"saved_model.pb is damaged: {error}.", where=str(path)) from None
    graphs = [meta.graph_def for meta in held.meta_graphs]
    used = {node.op for graph in graphs for node in graph.node}
    used |= {n.op for graph in graphs for f in graph.library.function for n in f.node_def}
    reaching = sorted(used & _REACHING)
    if reaching and not trust:
        raise _untrusted(path, f"{', '.join(reaching)}, which read or write files or run Python")
    try:
        return tf.saved_model.load(str(path))
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(f"TensorFlow cannot read the folder: {text}.", where=str(path)) from error


def _untrusted(path: Path, what: str) -> InputError:
    return InputError(
        f"it has {what}.",
        where=str(path),
        hint='If you trust it, add --trust (options={"trust": True}).',
    )
