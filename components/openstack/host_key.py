"""The SSH host key of the VM.

It is created before the VM, so that the first connection is verified like every later one.
"""

import base64
import struct
from typing import Final

import pulumi
import pulumi_random as random
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from components.openstack.first_boot import HostKey

_TYPE: Final = b"ssh-ed25519"
_LETTERS: Final = 64
"""Length of the stored secret. With 62 letters and digits it has more entropy than the 256 bits of the key."""
_BLOCK: Final = 8
_LINE: Final = 70


def host_key(name: str, opts: pulumi.ResourceOptions | None = None) -> HostKey:
    """Return an Ed25519 key that is created once. It is the same in each run, so it does not replace the VM."""
    made = random.RandomPassword(name, length=_LETTERS, special=False, opts=opts)
    seed: pulumi.Output[str] = pulumi.Output.secret(made.result)
    return HostKey(
        private_openssh=seed.apply(lambda text: private_text(_key(text))),
        public=pulumi.Output.unsecret(seed.apply(lambda text: public_text(_key(text)))),
    )


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public key in OpenSSH's format."""
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def private_text(key: Ed25519PrivateKey) -> str:
    """Return the private key in OpenSSH's format, without a passphrase.

    The text is always the same. The library would write random check numbers, which show a reader with a passphrase
    that it is the right one (openssh-portable, PROTOCOL.key).
    """
    public = key.public_key().public_bytes_raw()
    blob = _string(_TYPE) + _string(public)
    secret = struct.pack(">II", 0, 0) + blob + _string(key.private_bytes_raw() + public) + _string(b"")
    secret += bytes(range(1, -len(secret) % _BLOCK + 1))
    none = _string(b"none")
    whole = b"openssh-key-v1\0" + none + none + _string(b"") + struct.pack(">I", 1) + _string(blob) + _string(secret)
    text = base64.b64encode(whole).decode()
    lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])


def _key(seed: str) -> Ed25519PrivateKey:
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"ssh host key").derive(seed.encode())
    return Ed25519PrivateKey.from_private_bytes(derived)


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
