"""Public SSH keys as settings have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stacks.settings.model import reject

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHPublicKeyTypes


def load(value: str, *, allowed: str, new: str) -> tuple[str, SSHPublicKeyTypes]:
    """Return a public key in one line, without spaces around it, and its type. Rejects others without showing them.

    allowed: the accepted types of keys. new: how to create one.
    """
    # Imported here, because only some targets need it.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    if "PRIVATE KEY" in value:
        reject(
            "this is a private key, and the stack's configuration now shows it to every reader",
            "remove it, create a new key pair, and write the content of the .pub file here",
            expected=allowed,
            secret=True,
        )
    text = value.strip()
    if len(text.splitlines()) > 1:
        reject("this has several lines", new, expected=allowed, secret=True)
    if not text.replace("\t", " ").isprintable():
        reject("this contains invisible characters", new, expected=allowed, secret=True)
    try:
        return text, load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        reject("this is not a public key in OpenSSH format", new, expected=allowed, secret=True)
