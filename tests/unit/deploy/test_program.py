"""The program around a model: files in, files out, and a self-test that notices damage."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.unit.deploy.test_build import feeds, mlp_text
from tests.unit.deploy.test_targets import text

import sardonyx as sx


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, cwd=program.parent
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    return sx.build(text(), folder, emit="exe", name="small").files[0][0]


def test_arrays_go_in_and_out_as_files(program: Path) -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8) / 16
    (expected,) = sx.Session(text()).run(None, {"x": x})
    assert isinstance(expected, np.ndarray)
    np.save(program.parent / "x.npy", x)
    x.tofile(program.parent / "x.raw")
    for arguments in (["x.npy"], ["x=x.npy", "--threads", "2"], ["x.raw", "--dim", "rows=5"]):
        done = run(program, *arguments, "-o", ".")
        assert (done.returncode, done.stderr) == (0, "")
        answer = np.load(program.parent / "y.npy")
        assert answer.shape == expected.shape
        assert np.array_equal(answer, expected)


def test_sine_and_cosine_of_one_number_link(tmp_path: Path) -> None:
    """Compilers make one call of another function of the two."""
    model = """<ir_version: 10, opset_import: ["" : 20]>
waves (double[n] x) => (double[n] y) { s = Sin(x)  c = Cos(x)  y = Add(s, c) }"""
    program = sx.build(model, tmp_path, emit="exe", name="waves").files[0][0]
    np.save(tmp_path / "x.npy", np.linspace(-9, 9, 37))
    assert run(program, "x.npy", "-o", ".").returncode == 0
    expected = np.sin(np.linspace(-9, 9, 37)) + np.cos(np.linspace(-9, 9, 37))
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=0, atol=1e-14)


def test_arrays_go_in_and_out_by_name_in_one_npz(tmp_path: Path) -> None:
    program = sx.build(mlp_text(), tmp_path, emit="exe", name="mlp").files[0][0]
    given = feeds(3)
    np.savez(tmp_path / "in.npz", y=given["y"], x=given["x"])
    done = run(program, "in.npz", "-o", "out.npz", "--threads", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out.npz\n", "")
    expected = dict(zip(("z", "total"), sx.Session(mlp_text()).run(None, given), strict=True))
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.testzip() is None
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == sorted(expected)
        assert all(np.array_equal(found[name], expected[name]) for name in expected)
    first = (tmp_path / "out.npz").read_bytes()
    np.save(tmp_path / "y.npy", given["y"])
    np.savez(tmp_path / "x.npz", x=given["x"])
    assert run(program, "x.npz", "y=y.npy", "-o", "out.npz").returncode == 0
    assert (tmp_path / "out.npz").read_bytes() == first


def test_an_npz_that_cannot_be_read_is_said_in_a_line(program: Path) -> None:
    folder = program.parent
    x = np.zeros((2, 8), np.float32)
    np.savez(folder / "in.npz", x=x)
    np.savez(folder / "other.npz", q=x)
    np.savez_compressed(folder / "small.npz", x=x)
    content = (folder / "in.npz").read_bytes()
    (folder / "cut.npz").write_bytes(content[:-30])
    flipped = bytearray(content)
    flipped[content.index(b"NUMPY") + 140] ^= 1
    (folder / "flipped.npz").write_bytes(flipped)
    for arguments, message in (
        (["small.npz"], "with numpy.savez, not savez_compressed: x.npy\n"),
        (["other.npz"], "small: has an array that no input is called; --list shows all: q.npy\n"),
        (["cut.npz"], "small: is a damaged .npz: it ends too early: cut.npz\n"),
        (["flipped.npz"], "small: is damaged: its checksum is another: x.npy\n"),
        (["x=in.npz"], "small: has names of its own: leave NAME= away: in.npz\n"),
    ):
        done = run(program, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith(message)


def test_what_does_not_fit_is_said_in_a_line(program: Path) -> None:
    np.save(program.parent / "wide.npy", np.zeros((1, 9), np.float32))
    np.save(program.parent / "double.npy", np.zeros((1, 8)))
    np.save(program.parent / "fortran.npy", np.asfortranarray(np.zeros((3, 8), np.float32)))
    (program.parent / "raw").write_bytes(bytes(30))
    (program.parent / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    for arguments, message in (
        (["wide.npy"], "small: input x: a dimension is 9, where 8 was expected\n"),
        (["double.npy"], "small: double.npy: float32 was expected for the input x\n"),
        (["fortran.npy"], "is not in C order"),
        (["raw", "--dim", "rows=1"], "small: x: the buffer has 30 bytes, where 32 were expected\n"),
        (["raw"], "small: give this dimension a size with --dim: rows\n"),
        (["cut.npy"], "small: ends within its head: cut.npy\n"),
        (["nowhere.npy"], "small: cannot be opened: nowhere.npy\n"),
        (["--shout", "x"], "small: is no option; --help shows all: --shout\n"),
    ):
        done = run(program, *arguments)
        assert done.returncode == 2
        assert message in done.stderr


def test_it_says_what_it_takes(program: Path) -> None:
    listed = run(program, "--list").stdout
    assert listed == "input x: float32[rows, 8]\noutput y: float32[rows, 6]\n"
    assert run(program, "--help").stdout.startswith("usage: small [NAME=]INPUT.npy")


def test_the_self_test_notices_a_flipped_bit(program: Path) -> None:
    assert run(program, "--self-test").stdout == "self-test: ok\n"
    content = bytearray(program.read_bytes())
    blobs = [i for i in range(0, len(content), 64) if content[i : i + 9] == b"SARDONYX\x01"]
    for blob in blobs:  # of every level of CPUs that the program has code for
        content[blob + 64] ^= 1  # the lowest bit of a weight
    damaged = program.parent / "damaged"
    damaged.write_bytes(content)
    damaged.chmod(0o755)
    done = run(damaged, "--self-test")
    assert (done.returncode, done.stdout) == (1, "self-test: FAILED: the weights are damaged\n")


def test_the_self_test_notices_any_flipped_bit(program: Path) -> None:
    whole = program.read_bytes()
    damaged = program.parent / "flipped"
    spots = np.random.default_rng(5).integers(0, len(whole), 40)
    for spot in [*map(int, spots), whole.index(b"SARDONYX-OWNSUM") + 20, len(whole) - 1]:
        content = bytearray(whole)
        content[spot] ^= 1 << spot % 8
        damaged.write_bytes(content)
        damaged.chmod(0o755)
        try:
            argv = [damaged, "--self-test"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
        except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
            continue  # it does not even start, or speak
        assert done.returncode != 0, spot
        assert "self-test: ok" not in done.stdout


def test_programs_are_linked_for_other_machines(tmp_path: Path) -> None:
    for target in ("x86_64-linux", "riscv64-linux", "aarch64-linux"):
        path = sx.build(text(), tmp_path / target, target=target, emit="exe", name="small").files[
            0
        ][0]
        assert path.read_bytes().startswith(b"\x7fELF")
    emulator = shutil.which("qemu-aarch64")
    if emulator is not None and Path("/lib/ld-linux-aarch64.so.1").exists():
        done = subprocess.run([emulator, path, "--self-test"], capture_output=True, check=True)
        assert done.stdout == b"self-test: ok\n"
