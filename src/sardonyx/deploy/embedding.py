"""Weights and other bytes inside an artifact: the assembler copies the file as it is, so 500 MB take a second and no C is parsed."""

from __future__ import annotations

__all__ = ["write_data_unit"]

_SECTIONS = {
    "elf": ('.section .rodata.{symbol},\\"a\\"', ".hidden {symbol}", ""),
    "macho": (".section __TEXT,__const", ".private_extern {symbol}", "_"),
    "wasm": ('.section .rodata.{symbol},\\"\\",@', ".hidden {symbol}", ""),
    "coff": ('.section .rdata,\\"dr\\"', "", ""),
}
ALIGNMENT = 64


def write_data_unit(name: str, file: str, form: str) -> str:
    """C text that puts `file`, found on the include path, at the symbol `name`.

    Args:
        form: of object files: "elf", "macho", "coff" or "wasm".
    """
    section, hidden, underscore = _SECTIONS[form]
    symbol = f"{underscore}{name}"
    lines = [
        section.format(symbol=symbol),
        f".globl {symbol}",
        hidden.format(symbol=symbol),
        f".balign {ALIGNMENT}",
        f".type {symbol}, @object" if form == "wasm" else "",
        f"{symbol}:",
        f'.incbin \\"{file}\\"',
        f".size {symbol}, . - {symbol}" if form == "wasm" else "",
        {"elf": ".previous", "wasm": ""}.get(form, ".text"),
    ]
    body = "\n".join(f'    "{line}\\n"' for line in lines if line)
    return f"__asm__(\n{body});\n"
