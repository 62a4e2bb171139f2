"""TensorFlow and Keras: the ways to ONNX, in the order in which they are tried.

A Keras model on another backend is that framework's: its frontend converts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from sardonyx.conversion.candidate import Candidate, Route
from sardonyx.conversion.request import Request
from sardonyx.errors import ConvertError, MissingExtraError, SardonyxError

__all__ = ["routes"]


def routes(request: Request) -> Sequence[Route]:
    """What the model may be converted by; nothing is exported before a route is made.

    Raises:
        InputError: a file is damaged or not trusted, or the examples do not fit.
        ConvertError: the model's answers are random, or it takes no other sizes.
    """
    backend = _keras_backend(request)
    if backend is not None and backend != "tensorflow":
        from sardonyx.conversion.tensorflow.other_backends import other_routes

        return other_routes(request, backend)
    try:
        import tensorflow  # noqa: F401
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"{error.name} is not installed.", hint='Run: pip install "sardonyx[tensorflow]"'
        ) from error
    from sardonyx.conversion.tensorflow.export import by_lite, by_tf2onnx
    from sardonyx.conversion.tensorflow.files import open_file
    from sardonyx.conversion.tensorflow.finish import finish
    from sardonyx.conversion.tensorflow.subject import open_subject

    model = request.source if request.path is None else open_file(request)
    subject = open_subject(model, request)

    def route(name: str, make: Callable[[Any], ir.Model]) -> Route:
        def candidate() -> Candidate:
            try:
                made = finish(make(subject), subject, request.opset)
            except SardonyxError:
                raise
            except Exception as error:  # TensorFlow may raise anything
                text = " ".join(str(error).split())[:300]
                raise ConvertError(f"{type(error).__name__}: {text}.") from error
            return Candidate(made, subject.reference.answer, subject.trials, subject.notes)

        return Route(name, candidate)

    return [route("tf2onnx, repaired", by_tf2onnx), route("TensorFlow Lite", by_lite)]


def _keras_backend(request: Request) -> str | None:
    """The backend that Keras computes with, where it is a Keras model."""
    path = request.path
    by_file = path is not None and not path.is_dir()
    bases = () if path is not None else type(request.source).__mro__
    if not by_file and not any(base.__module__.partition(".")[0] == "keras" for base in bases):
        return None
    import keras

    backend: str = keras.backend.backend()
    return backend
