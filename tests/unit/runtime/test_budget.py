"""A cache holds no more than it may: what was used longest ago goes, and nothing that is in use."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sardonyx.errors import InputError
from sardonyx.options import Environment, read_environment
from sardonyx.runtime import budget
from sardonyx.runtime.budget import LARGEST, OVERHEAD, limit_of, read_count
from sardonyx.runtime.cache import Cache, default_cache

SIZE = 1 << 20
COST = SIZE + OVERHEAD


def put(cache: Cache, key: str, *, days: float = 0, kind: str = "weights") -> Path:
    """An entry that was last used so many days ago."""
    path = cache.put(
        kind, key, lambda out: out.write_bytes(key.encode() * (SIZE // len(key))) and None
    )
    used = time.time() - days * 86_400
    os.utime(path, (used, path.stat().st_mtime))
    return path


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Grows when somebody looks at all entries of a kind."""
    found: list[Path] = []
    real = budget.walk

    def watched(folder: Path) -> object:
        found.append(folder)
        return real(folder)

    monkeypatch.setattr(budget, "walk", watched)
    return found


def test_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=5 * COST)
    days = {"aaaa": 3, "bbbb": 9, "cccc": 1, "dddd": 7, "eeee": 2}
    paths = {key: put(cache, key, days=age) for key, age in days.items()}
    assert all(path.exists() for path in paths.values())
    newest = put(cache, "ffff")
    # One is too many, and then a fifth of the limit is made free beyond it.
    left = {key for key, path in paths.items() if path.exists()}
    assert left == {"aaaa", "cccc", "eeee"}
    assert newest.exists()
    assert not paths["bbbb"].parent.exists()
    assert read_count(cache.root) == 4 * COST
    assert cache.usage().bytes == 4 * SIZE


def test_a_use_counts_and_kinds_share_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=2 * COST)
    old = put(cache, "aaaa", days=9, kind="library")
    young = put(cache, "bbbb", days=1, kind="weights")
    assert cache.find("library", "aaaa") == old
    put(cache, "cccc")
    assert old.exists()
    assert not young.exists()


def test_what_is_small_stays_a_month_longer(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=4 * COST)

    def small(key: str, days: float) -> Path:
        path = cache.put("object", key, lambda out: out.write_bytes(key.encode()) and None)
        os.utime(path, (time.time() - days * 86_400, path.stat().st_mtime))
        return path

    old, young, weights = small("o", 35), small("y", 20), put(cache, "aaaa", days=3)
    for key in ("bbbb", "cccc", "dddd"):
        put(cache, key)
    assert (old.exists(), weights.exists(), young.exists()) == (False, False, True)


def test_what_is_in_use_stays_even_beyond_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=COST)
    paths = [put(cache, key) for key in ("aaaa", "bbbb", "cccc")]
    assert all(path.exists() for path in paths)
    for path in paths:
        os.utime(path, (0, path.stat().st_mtime))
    put(cache, "dddd")
    assert not any(path.exists() for path in paths)


def test_who_has_it_mapped_goes_on(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=COST)
    path = put(cache, "aaaa")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        os.utime(path, (0, path.stat().st_mtime))
        put(cache, "bbbb")
        assert not path.exists()
        assert mapped[-4:] == b"aaaa"


def test_most_puts_look_at_nothing(tmp_path: Path, looks: list[Path]) -> None:
    cache = Cache(tmp_path / "cache", limit=100 * COST)
    put(cache, "aaaa")
    assert looks  # nobody had counted
    looks.clear()
    for number in range(50):
        put(Cache(cache.root, limit=100 * COST), f"{number:04}")
    assert looks == []
    assert read_count(cache.root) == 51 * COST


@pytest.mark.parametrize("damage", [b"", b"cats", b"-5", b"\0" * 40], ids=repr)
def test_a_count_that_is_lost_is_made_again(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path / "cache", limit=3 * COST)
    paths = [put(cache, key, days=1) for key in ("aaaa", "bbbb", "cccc")]
    (cache.root / "used").write_bytes(damage)
    put(cache, "dddd")
    assert read_count(cache.root) == sum(path.exists() for path in paths) * COST + COST
    assert not all(path.exists() for path in paths)


def test_a_count_that_is_too_high_is_set_right_and_nothing_goes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=3 * COST)
    path = put(cache, "aaaa", days=1)
    (cache.root / "used").write_bytes(b"%d" % (10**15))
    put(cache, "bbbb")
    assert path.exists()
    assert read_count(cache.root) == 2 * COST


def test_a_cache_of_before_is_counted_by_the_first_put(tmp_path: Path) -> None:
    """What an earlier version kept without any limit goes too."""
    cache = Cache(tmp_path / "cache", limit=100 * COST)
    for number in range(10):
        put(cache, f"{number:04}", days=10 - number)
    (cache.root / "used").unlink()
    put(Cache(cache.root, limit=5 * COST), "aaaa")
    assert cache.usage().count == 4


def test_clearing_is_counted(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    put(cache, "aaaa", days=9)
    put(cache, "bbbb")
    cache.clear(older_than=86_400)
    assert read_count(cache.root) == COST
    cache.clear()
    assert read_count(cache.root) == 0


WRITE = """
import sys
from pathlib import Path
from sardonyx.runtime import budget
from sardonyx.runtime.cache import Cache
budget.PAUSE_SECONDS = budget.IN_USE_SECONDS = 0.0
cache = Cache(Path(sys.argv[1]), limit=20 << 20)
for number in range(40):
    key = f"{sys.argv[2]}{number}"
    path = cache.put("weights", key, lambda out: out.write_bytes(key.encode() * 100_000) and None)
"""


def test_processes_share_one_limit(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WRITE, str(tmp_path / "cache")]
    started = [subprocess.Popen([*argv, name]) for name in ("aaaaaaa", "bbbbbbb", "ccccccc")]
    assert [process.wait() for process in started] == [0, 0, 0]
    held = Cache(tmp_path / "cache").usage().bytes
    assert 0 < held <= (20 << 20) + 3 * 1_000_000
    # Counting was never forgotten; an entry may be counted twice until somebody looks again.
    assert (read_count(tmp_path / "cache") or 0) >= held


def test_the_default_follows_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < limit_of(tmp_path, None, 0) <= LARGEST
    for free, used, limit in (
        (1 << 40, 0, LARGEST),
        (20 << 30, 0, 4 << 30),
        (10 << 30, 10 << 30, 4 << 30),
        (0, 5 << 30, 1 << 30),
    ):
        disk = SimpleNamespace(f_bavail=free >> 12, f_frsize=1 << 12)
        monkeypatch.setattr(os, "statvfs", lambda path, disk=disk: disk)
        assert limit_of(tmp_path, None, used) == limit
        assert limit_of(tmp_path, 7, used) == 7


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("20G", 20 << 30),
        ("500 MiB", 500 << 20),
        ("1.5g", 3 << 29),
        ("0", 0),
        ("123", 123),
        ("", None),
    ],
)
def test_the_user_says_how_much(tmp_path: Path, text: str, limit: int | None) -> None:
    given = read_environment({"SARDONYX_CACHE": str(tmp_path / "c"), "SARDONYX_CACHE_LIMIT": text})
    assert given.cache_limit == limit
    assert default_cache(given).usage().limit == limit_of(tmp_path, limit, 0)


@pytest.mark.parametrize("text", ["lots", "-1G", "10 parsecs", "1e9", "G", "9" * 400])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="SARDONYX_CACHE_LIMIT"):
        read_environment({"SARDONYX_CACHE_LIMIT": text})


def test_a_limit_does_not_make_a_folder(tmp_path: Path) -> None:
    assert read_count(tmp_path / "none") is None
    assert Environment(tmp_path).cache_limit is None
    assert list(tmp_path.iterdir()) == []
