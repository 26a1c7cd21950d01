"""Values of section openstack: names, keys, networks, each with its rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

from stacks.settings import ssh_key
from stacks.settings.model import form, matching, reject

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHPublicKeyTypes

LEAST_RSA_BITS: Final = 2048
LONGEST_KEY: Final = 3000
"""Characters of one in the user data: of RSA with 16384 bits, the most that OpenSSH takes, and a remark."""
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,47}")
_NAMES: Final = "1 to 48 lower-case letters, digits and -, with a letter first"
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_USERS: Final = "1 to 32 lower-case letters, digits, _ and -, with a letter or _ first"
_TAKEN: Final = re.compile(
    r"""
    root | daemon | bin | sys | sync | games | man | lp | mail | news | uucp | proxy | www-data | backup | list | irc
    | gnats | _apt | nobody | adm | tty | disk | kmem | dialout | fax | voice | cdrom | floppy | tape | sudo | audio
    | dip | operator | src | shadow | utmp | video | sasl | plugdev | staff | users | nogroup
    | systemd-(network|resolve|timesync|journal|coredump) | messagebus | syslog | uuidd | tcpdump | tss | landscape
    | pollinate | sshd | _ssh | usbmux | fwupd-refresh | lxd | netdev | polkitd | kvm | input | sgx | render | crontab
    | docker | dhcpcd
    """,
    re.VERBOSE,
)
"""Users and groups that Ubuntu's cloud images and Docker have themselves (base-passwd, passwd.master and group.master;
then those of packages): cloud-init creates a user with a group of the same name, and fails if that exists."""
_ID: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_IDS: Final = "the volume's ID: 8, 4, 4, 4 and 12 hexadecimal digits with hyphens between them"
_KEY: Final = r"\s*(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521))[\s\S]*"
_TOUCHED: Final = r"sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com"
"""Types of keys in hardware that somebody touches at each use (openssh-portable, PROTOCOL.u2f)."""
_KEYS: Final = (
    f"a public key in one line, of type ssh-ed25519, ecdsa-sha2-nistp256 (384, 521), or ssh-rsa of at least "
    f"{LEAST_RSA_BITS} bits"
)
_NEW: Final = "run `ssh-keygen -t ed25519 -f ~/.ssh/local-cpouta.pem` and write the content of the .pub file here"
_KEY_FILES: Final = "the path of a private key's file, which starts with / or ~/"
_UNQUOTED: Final = re.compile(r"[%\"\x00-\x1f\x7f]|\$\{")
"""What ssh_config(5) does not take literally in an IdentityFile, TOKENS and ENVIRONMENT VARIABLES."""
_PRIVATE: Final = re.compile(r"PRIVATE KEY|PuTTY-User-Key-File|b3BlbnNzaC1rZXktdjE")
"""Shows a private key: PEM, PuTTY's format, and base64 of OpenSSH's without its frame."""


def _public_key(value: str) -> str:
    from cryptography.hazmat.primitives.asymmetric.dsa import DSAPublicKey

    key, public = _loaded(value)
    if re.fullmatch(_TOUCHED, key.split()[0]):
        reject("this key must be touched at each use, which the stack cannot do", _NEW, expected=_KEYS)
    if isinstance(public, DSAPublicKey) or not re.fullmatch(_KEY, key):
        reject(f"sshd no longer accepts keys of type {key.split()[0]}", _NEW, expected=_KEYS)
    return key


def _others_key(value: str) -> str:
    """Return another user's public key. Nova does not check it, and sshd also accepts security keys."""
    key, _ = _loaded(value)
    return key if re.fullmatch(_TOUCHED, key.split()[0]) else _public_key(value)


def _loaded(value: str) -> tuple[str, SSHPublicKeyTypes]:
    """Return a key's line and its type."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key, public = ssh_key.load(value, allowed=_KEYS, new=_NEW)
    if isinstance(public, RSAPublicKey) and public.key_size < LEAST_RSA_BITS:
        reject(f"this key has {public.key_size} bits", _NEW, expected=_KEYS)
    # Nova splits at single spaces (nova/crypto.py, generate_fingerprint).
    line = " ".join(key.split(maxsplit=2))
    if handed(line) > LONGEST_KEY:
        reject(
            "this line is too long for the user data of the VM's first boot",
            "shorten the comment",
            expected=f"a public key with its comment, in at most {LONGEST_KEY} characters",
        )
    return line, public


def handed(line: str) -> int:
    """Return the maximum characters of a key in the user data. YAML escapes letters other than ASCII."""
    return len(json.dumps(line))


def _key_file(value: str) -> str:
    if _PRIVATE.search(value):
        reject(
            "this is a private key instead of its file, and the stack's configuration now contains it",
            "remove it, create a new key pair, and name the file of the private key",
            expected=_KEY_FILES,
            secret=True,
        )
    if not value.strip() or "\n" in value or "\0" in value:
        reject(
            "this is not the path of a file",
            "write the path of the file, or remove the key; the default is the tutorial's path",
            expected=_KEY_FILES,
        )
    if not value.startswith(("/", "~/")):
        reject(
            "ssh would use another path: it does not expand variables or use the stack's folder",
            "write the full path, such as ~/.ssh/local-cpouta.pem",
            expected=_KEY_FILES,
        )
    if _UNQUOTED.search(value):
        reject(
            "ssh would read another path: it expands % and ${, and its configuration cannot contain quotation "
            "marks, line breaks and similar characters",
            "rename the file",
            expected=_KEY_FILES,
        )
    if value.endswith(".pub"):
        reject("this is the file of the public key", f"did you mean {value.removesuffix('.pub')}?", expected=_KEY_FILES)
    return value


def _user(value: str) -> str:
    hint = "remove the key; the default is ubuntu"
    if not _USER.fullmatch(value):
        reject("this name is invalid for a user", hint, expected=_USERS)
    if _TAKEN.fullmatch(value):
        message = "sign-in as root is disabled" if value == "root" else "the system has a user or group with this name"
        reject(message, hint, expected=f"{_USERS}; not a name of the system")
    return value


def _not_every_projects(value: str) -> str:
    """Reject the name of the security group that each project has (neutron, extensions/securitygroup.py)."""
    if value == "default":
        reject(
            "each project has a security group with this name, and OpenStack rejects another one",
            "remove the key; the default is mlops-platform",
            expected=f"{_NAMES}; not default",
        )
    return value


def _named(values: Mapping[str, object]) -> Mapping[str, object]:
    for name in values:
        if not _NAME.fullmatch(name):
            reject(
                f"{name!r} is invalid as the name of a rule",
                "name each network after its users, such as office",
                expected=_NAMES,
            )
    return values


Name = Annotated[
    str,
    form(_NAME.pattern, _NAMES, "this name is invalid for the VM", "for example 'mlops-platform'"),
    AfterValidator(_not_every_projects),
]
RuleName = Annotated[str, form(_NAME.pattern, _NAMES, "this name is invalid for a rule", "for example 'web'")]
User = Annotated[str, matching(_user, _USER.pattern, _USERS)]
VolumeId = Annotated[str, form(_ID, _IDS, "this is not a volume's ID", "`openstack volume list` prints the ids")]
PublicKey = Annotated[str, matching(_public_key, _KEY, _KEYS)]
OthersKey = Annotated[str, matching(_others_key, rf"{_KEY}|\s*{_TOUCHED} [\s\S]*", _KEYS)]
KeyFile = Annotated[str, AfterValidator(_key_file)]
RuleNames = AfterValidator(_named)
