"""The C of a dozen kernels, as files: a change of the code generator is seen as a difference of what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.models import TEXTS, proto, units

FOLDER = Path(__file__).parent


def check(name: str, text: str, update: bool) -> None:
    path = FOLDER / f"{name}.c"
    if update:
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{name}.c is not there: run pytest tests/golden --update-golden"
    assert text == path.read_text(encoding="utf-8"), (
        f"{name}.c has changed; if that is meant, run pytest tests/golden --update-golden"
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden", default=False))


@pytest.mark.parametrize("name", TEXTS)
def test_kernels(name: str, update: bool) -> None:
    kernels = [text for file, text in units(proto(TEXTS[name])).items() if file != "main.c"]
    assert kernels
    check(name, "\n".join(kernels), update)


def test_main(update: bool) -> None:
    check("main", units(proto(TEXTS["lstm"]))["main.c"], update)


def test_no_file_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.c")} == {*TEXTS, "main"}
