"""Whose an artifact is: an ed25519 signature of its manifest, which has the SHA-256 of every other file.

    openssl genpkey -algorithm ed25519 -out key.pem
    openssl pkey -in key.pem -pubout -out pub.pem

`NAME.sig` is the plain signature of the bytes of `NAME.json`, 64 bytes, so that other tools can check it too.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx.deploy.manifest import digest_of_file, listed_files, manifest_of
from sardonyx.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = ["Verified", "read_private_key", "sign_manifest", "verify_artifact"]

_SUFFIX = ".sig"
_MOST_KEY_BYTES = 1 << 16
_MOST_MANIFEST_BYTES = 1 << 26
_HOW = "Make a pair as in: openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out pub.pem"


@dataclass(frozen=True)
class Verified:
    """What a signature and the digests under it say.

    Attributes:
        signer: the SHA-256 of the public key, in hexadecimal.
        signed: whether the signature is the key's, and of this manifest.
        files: those that the manifest lists, each "ok", "changed" or "missing".
    """

    artifact: Path
    manifest: Path
    signer: str
    signed: bool
    files: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """The artifact is what was signed, and nothing beside it is another's. Of a manifest, all files must be there."""
        states = dict(self.files)
        asked = self.artifact != self.manifest
        own = states.get(self.artifact.name) == "ok" if asked else "missing" not in states.values()
        return self.signed and own and "changed" not in states.values()

    def to_json(self) -> dict[str, Any]:
        return {
            "artifact": str(self.artifact),
            "manifest": str(self.manifest),
            "signer": self.signer,
            "signed": self.signed,
            "files": dict(self.files),
            "ok": self.ok,
        }


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key to sign with, from a PEM file.

    Raises:
        InputError: there is none in the file, or it is of another kind.
        MissingExtraError: the package that signs is not installed.
    """
    serialization, ed25519 = _cryptography()
    try:
        key = serialization.load_pem_private_key(_content(path, _MOST_KEY_BYTES), password=None)
    except (ValueError, TypeError) as error:  # TypeError: it has a password
        raise _no_key(path, "private", error) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _no_key(path, "private", "it is of another kind")
    found: Ed25519PrivateKey = key
    return found


def sign_manifest(manifest: Path, key: Ed25519PrivateKey) -> Path:
    """Put the signature beside it."""
    path = manifest.with_suffix(_SUFFIX)
    path.write_bytes(key.sign(manifest.read_bytes()))
    return path


def verify_artifact(path: Path, key: Path) -> Verified:
    """Whether an artifact, its weights and all that was built with it are what the owner of the key signed.

    Args:
        path: the artifact, or its manifest.
        key: the public key, a PEM file.

    Raises:
        InputError: nothing beside the file says that it was built, or it was not signed.
    """
    public = _read_public_key(key)
    manifest = _manifest_of(path)
    signature = manifest.with_suffix(_SUFFIX)
    if not signature.is_file():
        raise InputError(
            f"there is no {signature.name} beside it: it was not signed",
            where=f"artifact {path.name!r}",
            hint="Build it with --sign key.pem.",
        )
    content = _content(manifest, _MOST_MANIFEST_BYTES)
    listed = listed_files(content)
    return Verified(
        path,
        manifest,
        _fingerprint(public),
        _is_signed(public, _content(signature, _MOST_KEY_BYTES), content),
        tuple((name, _state(manifest.parent, name, digest)) for name, digest in listed.items()),
    )


def _manifest_of(path: Path) -> Path:
    """The artifact itself is not loaded to find it: nobody knows it yet."""
    if not path.is_file():
        raise InputError("there is no such file", where=f"file {str(path)!r}")
    found = path if path.suffix == ".json" else manifest_of(path)
    if found is None:
        raise InputError(
            "no manifest beside it lists it",
            where=f"file {str(path)!r}",
            hint="Keep NAME.json and NAME.sig, which were written with it, in the same folder.",
        )
    return found


def _state(folder: Path, name: str, digest: str) -> str:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        return "changed"  # a manifest of ours names nothing outside of its folder
    if not path.is_file():
        return "missing"
    return "ok" if digest_of_file(path) == digest else "changed"


def _is_signed(public: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _read_public_key(path: Path) -> Ed25519PublicKey:
    serialization, ed25519 = _cryptography()
    try:
        key = serialization.load_pem_public_key(_content(path, _MOST_KEY_BYTES))
    except ValueError as error:
        raise _no_key(path, "public", error) from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _no_key(path, "public", "it is of another kind")
    found: Ed25519PublicKey = key
    return found


def _fingerprint(public: Ed25519PublicKey) -> str:
    serialization, _ = _cryptography()
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def _no_key(path: Path, kind: str, why: object) -> InputError:
    return InputError(
        f"it has no {kind} ed25519 key without a password: {why}",
        where=f"file {str(path)!r}",
        hint=_HOW,
    )


def _content(path: Path, most: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > most:
            raise InputError(
                f"it has {size} bytes, where {most} are the most",
                where=f"file {str(path)!r}",
                value=size,
                limit=most,
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"it cannot be read: {error.strerror}", where=f"file {str(path)!r}"
        ) from None


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtraError(
            "signatures need the package cryptography, which is not installed",
            value=str(error),
            hint='Run: pip install "sardonyx[sign]"',
        ) from None
    return serialization, ed25519
