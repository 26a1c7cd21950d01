"""Public SSH keys as settings have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stacks.settings.model import reject

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHPublicKeyTypes


def load(value: str, *, allowed: str, new: str) -> tuple[str, SSHPublicKeyTypes]:
    """Return a public key in one line, without blanks around it, and what it is; refuses what is none, unrepeated.

    allowed: which keys are taken. new: how to make one.
    """
    # Only some targets need it, and every start of the program would pay for the import.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    if "PRIVATE KEY" in value:
        reject(
            message="this is a private key, which nobody but you may have: it now stands in the stack's configuration",
            expected=allowed,
            hint="remove it, take a new pair of keys, and put the content of the file that ends with .pub here",
            secret=True,
        )
    text = value.strip()
    if len(text.splitlines()) > 1:
        reject(message="these are several lines", expected=allowed, hint=new, secret=True)
    if not text.replace("\t", " ").isprintable():
        reject(message="there are characters in it that nobody sees", expected=allowed, hint=new, secret=True)
    try:
        return text, load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        reject(message="this is no public key as OpenSSH writes them", expected=allowed, hint=new, secret=True)
