"""Signed artifacts: a flipped bit anywhere is noticed, and so is another's key."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.unit.deploy.test_targets import text
from typer.testing import CliRunner

import sardonyx as sx
from sardonyx.cli import build_app
from sardonyx.deploy.signing import verify_artifact
from sardonyx.errors import InputError, MissingExtraError

pytest.importorskip("cryptography", reason="the package cryptography is not installed")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with key.pem, pub.pem, and other.pem, the public key of somebody else."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    folder = tmp_path_factory.mktemp("keys")
    for seed, name in ((1, "pub.pem"), (2, "other.pem")):
        key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        public = key.public_key()
        pem, spki = form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
        (folder / name).write_bytes(public.public_bytes(pem, spki))
        if name == "pub.pem":
            none = form.NoEncryption()
            private = key.private_bytes(pem, form.PrivateFormat.PKCS8, none)
            (folder / "key.pem").write_bytes(private)
    return folder


@pytest.fixture(scope="module")
def signed(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    sx.build(text(), folder, name="small", weights="beside", sign=keys / "key.pem")
    return folder / "libsmall.so"


def test_what_was_signed_is_verified(signed: Path, keys: Path) -> None:
    verified = verify_artifact(signed, keys / "pub.pem")
    assert verified.ok
    assert dict(verified.files) == dict.fromkeys(
        ["libsmall.so", "small.h", "small.weights", "small.selftest"], "ok"
    )
    assert str(keys) not in (signed.parent / "small.json").read_text()
    assert not verify_artifact(signed, keys / "other.pem").signed
    assert verify_artifact(signed.parent / "small.json", keys / "pub.pem").ok


def test_a_flipped_bit_anywhere_is_noticed(signed: Path, keys: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(signed.parent, tmp_path / "copy"))
    random = np.random.default_rng(7)
    files = sorted(folder.iterdir())
    assert len(files) == 6
    for file in files:
        whole = file.read_bytes()
        for spot in (0, len(whole) - 1, *map(int, random.integers(0, len(whole), 6))):
            content = bytearray(whole)
            content[spot] ^= 1 << int(random.integers(8))
            file.write_bytes(content)
            try:
                assert not verify_artifact(folder / signed.name, keys / "pub.pem").ok
            except InputError:
                assert file.name == "small.json"  # it is no JSON any more
        file.write_bytes(whole)
    assert verify_artifact(folder / signed.name, keys / "pub.pem").ok


def test_files_of_others_are_not_taken_for_it(signed: Path, keys: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(signed.parent, tmp_path / "copy"))
    (folder / "small.h").unlink()  # a machine without a compiler has no use for it
    verified = verify_artifact(folder / signed.name, keys / "pub.pem")
    assert verified.ok
    assert dict(verified.files)["small.h"] == "missing"
    assert not verify_artifact(folder / "small.json", keys / "pub.pem").ok
    (folder / "evil.so").write_bytes(b"")
    with pytest.raises(InputError, match="no manifest beside it lists it"):
        verify_artifact(folder / "evil.so", keys / "pub.pem")
    (folder / "small.sig").unlink()
    with pytest.raises(InputError, match=r"there is no small.sig beside it: it was not signed"):
        verify_artifact(folder / signed.name, keys / "pub.pem")


def test_the_command_says_yes_or_no(signed: Path, keys: Path) -> None:
    runner, app = CliRunner(), build_app()
    good = runner.invoke(app, ["verify", str(signed), "--key", str(keys / "pub.pem")])
    assert good.exit_code == 0
    assert good.output.endswith("verified\n")
    argv = ["verify", str(signed), "--json", "--key", str(keys / "other.pem")]
    bad = runner.invoke(app, argv)
    assert bad.exit_code == 1
    assert json.loads(bad.output)["signed"] is False


def test_keys_that_cannot_be_used_are_refused(keys: Path, tmp_path: Path) -> None:
    for key in (keys / "pub.pem", keys / "nowhere.pem", Path(__file__)):
        with pytest.raises(InputError, match=key.name):
            sx.build(text(), tmp_path / "out", sign=key)
    assert not (tmp_path / "out").exists()


def test_without_the_package_it_says_how_to_get_it(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sardonyx\[sign\]"'):
        sx.build(text(), tmp_path, sign=keys / "key.pem")


def test_other_tools_check_the_signature_too(signed: Path, keys: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    argv = [openssl, "pkeyutl", "-verify", "-rawin", "-in", str(signed.with_name("small.json"))]
    argv += ["-sigfile", str(signed.with_name("small.sig")), "-pubin", "-inkey"]
    for name, code in (("pub.pem", 0), ("other.pem", 1)):
        done = subprocess.run([*argv, str(keys / name)], capture_output=True, check=False)
        assert done.returncode == code, done.stderr
