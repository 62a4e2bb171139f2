"""The table that the families fill."""

from __future__ import annotations

from sardonyx.conversion.stored.layer import Layer, Table

__all__ = ["TABLE", "bias_of", "same_axes"]

# What schedules, trains or places a node, and what old symbols repeat for the reader.
_HARMLESS = {
    "__ctx_group__",
    "__dtype__",
    "__force_mirroring__",
    "__init__",
    "__lr_mult__",
    "__mirror_stage__",
    "__profiler_scope__",
    "__shape__",
    "__storage_type__",
    "__wd_mult__",
    "ctx_group",
    "cudnn_algo_verbose",
    "cudnn_off",
    "cudnn_tune",
    "force_mirroring",
    "lr_mult",
    "num_args",
    "wd_mult",
    "weight_lr_mult",
    "workspace",
}

TABLE = Table("MXNet", _HARMLESS)


def bias_of(layer: Layer, default: bool = False) -> bool:
    """Whether the third operand is a bias."""
    return not layer.flag("no_bias", default)


def same_axes(layer: Layer, name: str, axes: int, default: int) -> list[int]:
    """A tuple of one number for each axis of space; an empty one is the default."""
    found = layer.integers(name, ()) or [default] * axes
    if len(found) != axes:
        raise layer.refuse(f"{name} is {found}, for {axes} axes of space.")
    return found
