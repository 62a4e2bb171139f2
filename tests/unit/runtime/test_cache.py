"""The cache gives back what was put in, or nothing."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sardonyx.errors import CacheError
from sardonyx.options import Environment
from sardonyx.runtime import cache as module
from sardonyx.runtime.cache import KINDS, Cache, content_key, default_cache

KEY = content_key("a kernel")
DAY = 86_400


def writing(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_put_in_is_found(cache: Cache, kind: str) -> None:
    assert cache.find(kind, KEY) is None
    path = cache.put(kind, KEY, writing(b"content"))
    assert path.read_bytes() == b"content"
    assert cache.find(kind, KEY) == path
    assert Cache(cache.root).find(kind, KEY) == path
    assert cache.read(kind, KEY) == b"content"
    assert all(cache.find(other, KEY) is None for other in KINDS if other != kind)


@pytest.mark.parametrize("damage", [b"", b"contenu", b"content and more"])
def test_what_is_damaged_is_not_read(cache: Cache, damage: bytes) -> None:
    assert cache.read("plan", KEY) is None
    path = cache.put("plan", KEY, writing(b"content"))
    path.chmod(0o600)
    path.write_bytes(damage)
    assert cache.read("plan", KEY) is None
    assert not path.exists()


def test_what_has_grown_beyond_all_memory_is_not_read(cache: Cache) -> None:
    path = cache.put("plan", KEY, writing(b"content"))
    path.chmod(0o600)
    os.truncate(path, 1 << 42)
    assert cache.read("plan", KEY) is None
    assert not path.exists()


def test_what_is_replaced_is_gone(cache: Cache) -> None:
    for content in (b"first", b"second", b"second", b"first"):
        path = cache.replace("timing", KEY, writing(content))
        assert cache.find("timing", KEY) == path
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]


def test_everything_in_it_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "cache")
        with cache.lock(KEY):
            cache.put("object", KEY, writing(b"content"))
    finally:
        os.umask(before)
    for path in (cache.root, *cache.root.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_any_text_is_a_key(cache: Cache) -> None:
    for key in ("../../etc/passwd", "", "a" * 10_000, "/", "\0", "é\udc80"):
        path = cache.put("plan", key, writing(b"x"))
        assert cache.root in path.parents
        assert path.resolve() == path.absolute()
        assert cache.find("plan", key) == path


def test_keys_tell_their_parts_apart() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("1:a",), ("a", "1:")]
    assert len({content_key(*each) for each in parts}) == len(parts)
    assert content_key("é") == content_key("é".encode())


def test_there_are_only_these_kinds(cache: Cache) -> None:
    with pytest.raises(CacheError, match="object, library"):
        cache.put("../plan", KEY, writing(b""))
    with pytest.raises(CacheError, match="no kind"):
        cache.clear("everything")


def test_a_write_that_fails_leaves_nothing(cache: Cache) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.put("object", KEY, fail)
    assert cache.find("object", KEY) is None
    assert [path for path in cache.root.rglob("*") if path.is_file()] == []
    with pytest.raises(CacheError, match="No such file"):
        cache.put("object", KEY, lambda path: path.unlink())


def test_the_second_of_two_writers_does_no_harm(cache: Cache) -> None:
    first = cache.put("object", KEY, writing(b"one"))
    second = cache.put("object", KEY, writing(b"two"))
    assert {first.read_bytes(), second.read_bytes()} == {b"one", b"two"}
    assert cache.find("object", KEY) in (first, second)


def test_weights_are_hashed_only_after_a_change(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cache.put("weights", KEY, writing(b"w" * 100))
    code = cache.put("library", KEY, writing(b"code"))
    hashed: list[int] = []
    entry = sys.modules["sardonyx.runtime.entry"]
    monkeypatch.setattr(entry, "_hash", lambda fd, real=entry._hash: hashed.append(fd) or real(fd))
    assert cache.find("weights", KEY) == path
    assert hashed == []
    assert cache.find("library", KEY) == code
    assert len(hashed) == 1
    os.utime(path)  # copied or touched: looked at once, and then trusted again
    assert cache.find("weights", KEY) == path
    assert cache.find("weights", KEY) == path
    assert len(hashed) == 2
    path.chmod(0o600)
    path.write_bytes(b"w" * 99 + b"x")
    assert cache.find("weights", KEY) is None
    assert not path.exists()


def test_a_lock_keeps_threads_apart(cache: Cache) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with cache.lock("shared"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list((cache.root / "lock").iterdir()) == []


def test_a_dead_process_holds_no_lock(cache: Cache) -> None:
    code = (
        "import sys, time; from pathlib import Path; from sardonyx.runtime.cache import Cache\n"
        "with Cache(Path(sys.argv[1])).lock('k'): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(cache.root)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    process.kill()
    process.communicate()
    with cache.lock("k"):  # a hang would end the test
        pass


def test_a_forked_child_does_not_keep_its_parents_lock(cache: Cache) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from sardonyx.runtime.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "with cache.lock('k'):\n"
        "    child = os.fork()\n"
        "    if child == 0: time.sleep(60); os._exit(0)\n"
        "    waiting = os.open(cache.root / 'lock' / os.listdir(cache.root / 'lock')[0], os.O_RDWR)\n"
        "import fcntl; fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB); os.kill(child, 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(cache.root)], check=True)


def test_usage_and_clearing_by_kind_and_age(cache: Cache) -> None:
    old = cache.put("object", "old", writing(b"12345"))
    new = cache.put("object", "new", writing(b"123"))
    plan = cache.put("plan", "p", writing(b"1"))
    long_ago = time.time() - 40 * DAY
    os.utime(old, (long_ago, old.stat().st_mtime))
    usage = cache.usage()
    assert (usage.count, usage.bytes) == (3, 9)
    objects, plans = usage.kinds
    assert (objects.kind, objects.count, objects.bytes) == ("object", 2, 8)
    assert 39 * DAY < objects.oldest < 41 * DAY
    assert plans.oldest < DAY

    removed = cache.clear(older_than=30 * DAY)
    assert (removed.count, removed.bytes) == (1, 5)
    assert not old.parent.exists()
    assert cache.clear("library").count == 0
    assert cache.clear("plan").count == 1
    assert new.exists()
    assert not plan.exists()
    assert cache.clear().count == 1
    assert cache.usage().kinds == ()


def test_what_is_used_stays_young(cache: Cache) -> None:
    path = cache.put("library", KEY, writing(b"code"))
    os.utime(path, (0, path.stat().st_mtime))
    assert cache.find("library", KEY) == path
    assert cache.clear(older_than=DAY).count == 0


@pytest.mark.parametrize(("ago", "written"), [(600, False), (DAY, True)])
def test_uses_within_an_hour_are_not_told_apart(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, ago: float, written: bool
) -> None:
    path = cache.put("library", KEY, writing(b"code"))
    os.utime(path, (time.time() - ago, path.stat().st_mtime))
    calls: list[object] = []
    monkeypatch.setattr(os, "utime", lambda *args, **kwargs: calls.append(args))
    assert cache.find("library", KEY) == path
    assert bool(calls) == written


def test_leftovers_of_dead_processes_are_swept(cache: Cache) -> None:
    cache.put("object", "first", writing(b"x"))
    dead, alive, lock = cache.root / "tmp/1-dead", cache.root / "tmp/2-alive", cache.root / "lock/l"
    lock.parent.mkdir(exist_ok=True)
    for path in (dead, alive, lock):
        path.write_bytes(b"")
    for path in (dead, lock):
        os.utime(path, (0, 0))
    Cache(cache.root).put("object", "second", writing(b"y"))
    assert not dead.exists()
    assert not lock.exists()
    assert alive.exists()


def test_a_cache_is_picklable(cache: Cache) -> None:
    path = cache.put("object", KEY, writing(b"x"))
    assert pickle.loads(pickle.dumps(cache)).find("object", KEY) == path


def test_the_default_is_what_the_environment_says(tmp_path: Path) -> None:
    cache = default_cache(Environment(tmp_path / "a" / "b"))
    assert cache.root == tmp_path / "a" / "b"
    assert cache.reason == ""


def test_where_no_folder_can_be_made_there_is_a_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="SARDONYX_CACHE"):
        cache = default_cache(Environment(tmp_path / "file" / "cache"))
    assert "Not a directory" in cache.reason
    assert cache.root == module.temporary_folder()
    path = cache.put("object", KEY, writing(b"x"))
    assert cache.find("object", KEY) == path


def test_what_only_saves_time_is_left_out_where_the_disk_is_full(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    cache = Cache(tmp_path / "cache")
    assert cache.offer("header", "a", full) is None
    assert cache.outlives()
    kept = cache.offer("header", "a", lambda path: path.write_bytes(b"x") and None)
    assert kept is not None
    assert cache.find("header", "a") == kept
