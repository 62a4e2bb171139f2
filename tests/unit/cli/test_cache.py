"""`sardonyx cache`, as a user types it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sardonyx.cli import build_app
from sardonyx.runtime.cache import Cache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cache = Cache(tmp_path / "kept")
    for name, size in (("a", 100), ("b", 3000)):
        cache.put("object", name, lambda path, size=size: path.write_bytes(bytes(size)) and None)
    old = cache.put("library", "c", lambda path: path.write_bytes(b"code") and None)
    os.utime(old, (time.time() - 40 * 86_400, old.stat().st_mtime))
    return cache.root


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    environment = {
        "SARDONYX_CACHE": str(folder),
        "SARDONYX_CACHE_LIMIT": "2G",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    result = CliRunner().invoke(build_app(), ["cache", *arguments], env=environment)
    return result.exit_code, result.stdout, result.stderr


def test_it_says_what_is_kept_and_where(folder: Path) -> None:
    code, out, err = run(folder)
    assert (code, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "object 2 3.03 KiB now" in rows
    assert "library 1 4 B 40 days ago" in rows
    assert rows[-1] == f"3.03 KiB in {folder}, at most 2.00 GiB"


def test_json(folder: Path) -> None:
    code, out, _ = run(folder, "--json")
    said = json.loads(out)
    assert code == 0
    assert (said["folder"], said["entries"], said["bytes"]) == (str(folder), 3, 3104)
    assert said["limit"] == 2 << 30
    assert [(kind["kind"], kind["count"]) for kind in said["kinds"]] == [
        ("object", 2),
        ("library", 1),
    ]


def test_nothing_is_kept_and_nothing_is_made(tmp_path: Path) -> None:
    assert run(tmp_path / "none")[:2] == (0, f"Nothing is kept in {tmp_path / 'none'}.\n")
    assert "Removed 0 entries" in run(tmp_path / "none", "clear")[1]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "removed", "left"),
    [
        ((), "3 entries, 3.03 KiB", 0),
        (("--kind", "library"), "1 entry, 4 B", 2),
        (("--older-than", "30d"), "1 entry, 4 B", 2),
        (("--older-than", "6w"), "0 entries, 0 B", 3),
        (("--kind", "object", "--older-than", "0.5h"), "0 entries, 0 B", 3),
    ],
)
def test_clear(folder: Path, arguments: tuple[str, ...], removed: str, left: int) -> None:
    code, out, _ = run(folder, "clear", *arguments)
    assert code == 0
    assert f"Removed {removed}, from" in out
    assert Cache(folder).usage().count == left


def test_clear_as_json(folder: Path) -> None:
    assert json.loads(run(folder, "clear", "--json")[1])["entries"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("clear", "--kind", "cats"), "object, library, weights, plan, files, timing"),
        (("clear", "--older-than", "soon"), "As in: 30d"),
        (("clear", "--older-than", "30"), "As in: 30d"),
        (("clear", "--older-than", "-1d"), "As in: 30d"),
    ],
)
def test_what_is_not_understood(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(folder, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert Cache(folder).usage().count == 3


def test_a_folder_that_cannot_be_trusted_is_not_even_cleared(folder: Path) -> None:
    folder.chmod(0o777)
    code, _, err = run(folder, "clear")
    assert code == 2
    assert "writable by everybody" in err
    assert len(list(folder.glob("*/*/*"))) == 3


def test_help_has_examples(folder: Path) -> None:
    assert "sardonyx cache clear --kind" in run(folder, "clear", "--help")[1]
