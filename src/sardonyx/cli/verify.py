"""`sardonyx verify`: whether an artifact is what its maker signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sardonyx.deploy.signing import Verified

__all__ = ["verify"]


def verify(
    artifact: Annotated[
        Path,
        typer.Argument(help="What `build --sign` made, or its manifest.", show_default=False),
    ],
    key: Annotated[
        Path,
        typer.Option(help="The maker's public key, ed25519 in a PEM file.", show_default=False),
    ],
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check an artifact's signature, and that it and its weights are as they were signed.

    Nothing of the artifact is loaded. Exit code 1 when anything is another's.

    \b
    Example:
        sardonyx verify out/libmodel.so --key pub.pem
    """
    from sardonyx.cli.console import print_json
    from sardonyx.deploy.signing import verify_artifact

    verified = verify_artifact(artifact, key)
    if json_output:
        print_json(verified.to_json())
    else:
        _show(verified)
    if not verified.ok:
        raise typer.Exit(1)


def _show(verified: Verified) -> None:
    from sardonyx.cli.console import stdout, text

    console = stdout()
    good, bad = "green", "bold red"
    for name, state in verified.files:
        console.print(text(f"{name}: {state}", {"ok": good, "changed": bad}.get(state, "dim")))
    if verified.signed:
        console.print(text(f"{verified.manifest.name}: signed by {verified.signer}", good))
    else:
        console.print(text(f"{verified.manifest.name}: not signed by {verified.signer}", bad))
    verdict = text("verified", "bold green") if verified.ok else text("NOT verified", bad)
    console.print(verdict)
