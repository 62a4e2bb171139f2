"""Numbers as people read them: 12.3 M, 4.1 GMAC, 97.5 MiB."""

from __future__ import annotations

from sardonyx.sizes import Size

__all__ = ["bytes_text", "count_text", "size_text"]

_THOUSANDS = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count_text(number: int, unit: str = "") -> str:
    """`12.3 M`; with a unit, `4.1 GMAC`. Exact below a thousand."""
    value, prefix = _scaled(number, 1000, _THOUSANDS)
    digits = str(number) if not prefix else _three_digits(value)
    tail = prefix + unit
    return f"{digits} {tail}" if tail else digits


def bytes_text(number: int) -> str:
    """`97.5 MiB`. Exact below a kibibyte."""
    value, unit = _scaled(number, 1024, _BINARY)
    return f"{number} B" if unit == "B" else f"{_three_digits(value)} {unit}"


def size_text(size: Size | None, unit: str = "") -> str:
    """A number or an expression; what is not known is `?`. The unit "B" gives KiB, MiB, …"""
    if size is None:
        return "?"
    if isinstance(size, int):
        return bytes_text(size) if unit == "B" else count_text(size, unit)
    return f"{size} {unit}".rstrip()


def _scaled(number: int, base: int, names: tuple[str, ...]) -> tuple[float, str]:
    step, last = 0, len(names) - 1
    while abs(number) >= base ** (step + 1) and step < last:
        step += 1
    value = number / base**step
    # 999,960 is 1.00 M, not 1,000 k
    if step < last and round(abs(value)) >= base and step > 0:
        step, value = step + 1, value / base
    return value, names[step]


def _three_digits(value: float) -> str:
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:,.{decimals}f}"
