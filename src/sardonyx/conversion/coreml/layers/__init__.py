"""What CoreML's layers are in ONNX, one family a file.

Values are floats, as in CoreML: places are cast where they are used, and truths are 1 and 0. No value has less than one axis.
An attribute of 0 is one that was not set, and has the specification's default.
"""

from sardonyx.conversion.coreml.layers import (
    arrays,
    elements,
    gathering,
    images,
    products,
    recurrent,
    reducing,
)
from sardonyx.conversion.coreml.layers.table import TABLE

__all__ = [
    "TABLE",
    "arrays",
    "elements",
    "gathering",
    "images",
    "products",
    "recurrent",
    "reducing",
]
