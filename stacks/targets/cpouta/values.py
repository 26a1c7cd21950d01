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
then those of packages): cloud-init makes a user with a group of its own, and fails where there is one of the name."""
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IDS: Final = "the volume's id: 8, 4, 4, 4 and 12 hexadecimal digits with hyphens between them"
_KEY: Final = r"\s*(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521))[\s\S]*"
_TOUCHED: Final = r"sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com"
"""Types of keys in hardware that somebody touches at each use (openssh-portable, PROTOCOL.u2f)."""
_KEYS: Final = (
    f"a public key in one line, of type ssh-ed25519, ecdsa-sha2-nistp256 (384, 521), or ssh-rsa of at least "
    f"{LEAST_RSA_BITS} bits"
)
_NEW: Final = "`ssh-keygen -t ed25519 -f ~/.ssh/local-cpouta.pem` makes a pair; put the content of the .pub file here"
_KEY_FILES: Final = "the path of a private key's file, which begins with / or ~/"
_UNQUOTED: Final = re.compile(r"[%\"\x00-\x1f\x7f]|\$\{")
"""What ssh_config(5) does not take literally in an IdentityFile, TOKENS and ENVIRONMENT VARIABLES."""
_PRIVATE: Final = re.compile(r"PRIVATE KEY|PuTTY-User-Key-File|b3BlbnNzaC1rZXktdjE")
"""Shows a private key: PEM, PuTTY's format, and base64 of OpenSSH's without its frame."""


def _public_key(value: str) -> str:
    from cryptography.hazmat.primitives.asymmetric.dsa import DSAPublicKey

    key, public = _loaded(value)
    if re.fullmatch(_TOUCHED, key.split()[0]):
        reject(
            message="somebody has to touch this key at each use, and nobody does for the stack",
            expected=_KEYS,
            hint=_NEW,
        )
    if isinstance(public, DSAPublicKey) or not re.fullmatch(_KEY, key):
        reject(message=f"sshd takes no keys of type {key.split()[0]} any more", expected=_KEYS, hint=_NEW)
    return key


def _others_key(value: str) -> str:
    """Return the public key of somebody else, which nobody asks Nova about: sshd takes those of security keys, too."""
    key, _ = _loaded(value)
    return key if re.fullmatch(_TOUCHED, key.split()[0]) else _public_key(value)


def _loaded(value: str) -> tuple[str, SSHPublicKeyTypes]:
    """Return a key's line, and what it is."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key, public = ssh_key.load(value, allowed=_KEYS, new=_NEW)
    if isinstance(public, RSAPublicKey) and public.key_size < LEAST_RSA_BITS:
        reject(message=f"this key has {public.key_size} bits", expected=_KEYS, hint=_NEW)
    # Nova cuts at single blanks (nova/crypto.py, generate_fingerprint).
    line = " ".join(key.split(maxsplit=2))
    if handed(line) > LONGEST_KEY:
        reject(
            message="this line does not fit into what OpenStack hands a VM for its first boot",
            expected=f"a public key with what is remarked behind it, in at most {LONGEST_KEY} characters",
            hint="shorten what is behind the key",
        )
    return line, public


def handed(line: str) -> int:
    """Return how many characters of the user data a key takes at most: of other letters than ASCII YAML writes more."""
    return len(json.dumps(line))


def _key_file(value: str) -> str:
    if _PRIVATE.search(value):
        reject(
            message="this is a private key itself, which now stands in the stack's configuration",
            expected=_KEY_FILES,
            hint="remove it, take a new pair of keys, and name the file of the private half",
            secret=True,
        )
    if not value.strip() or "\n" in value or "\0" in value:
        reject(message="this is no path of a file", expected=_KEY_FILES, hint="remove the key for the tutorial's")
    if not value.startswith(("/", "~/")):
        reject(
            message="ssh would look for it in another place: it knows neither variables nor the stack's folder",
            expected=_KEY_FILES,
            hint="write the whole path, such as ~/.ssh/local-cpouta.pem",
        )
    if _UNQUOTED.search(value):
        reject(
            message="ssh would read another path: it replaces what follows % and ${, and its settings cannot hold "
            "quotation marks, line breaks and the like",
            expected=_KEY_FILES,
            hint="give the file another name",
        )
    if value.endswith(".pub"):
        reject(
            message="this is the file of the public half",
            expected=_KEY_FILES,
            hint=f"did you mean {value.removesuffix('.pub')}?",
        )
    return value


def _user(value: str) -> str:
    hint = "remove the key for ubuntu"
    if not _USER.fullmatch(value):
        reject(message="no user can be called this", expected=_USERS, hint=hint)
    if _TAKEN.fullmatch(value):
        message = (
            "nobody signs in as root" if value == "root" else "the system has a user or a group of this name itself"
        )
        reject(message=message, expected=f"{_USERS}; none of the system's own", hint=hint)
    return value


def _not_every_projects(value: str) -> str:
    """Refuse the name of a security group that each project has (neutron, extensions/securitygroup.py)."""
    if value == "default":
        reject(
            message="each project has a security group of this name, and OpenStack refuses another one",
            expected=f"{_NAMES}; not default",
            hint="remove the key for mlops-platform",
        )
    return value


def _named(values: Mapping[str, object]) -> Mapping[str, object]:
    for name in values:
        if not _NAME.fullmatch(name):
            reject(
                message=f"{name!r} cannot be the name of a rule",
                expected=_NAMES,
                hint="name each network after who it is, such as office",
            )
    return values


Name = Annotated[
    str,
    form(_NAME, _NAMES, message="this cannot be the VM's name", hint="for example 'mlops-platform'"),
    AfterValidator(_not_every_projects),
]
RuleName = Annotated[str, form(_NAME, _NAMES, message="this cannot be the name of a rule", hint="for example 'web'")]
User = Annotated[str, matching(_user, _USER.pattern, _USERS)]
VolumeId = Annotated[
    str, form(_ID, _IDS, message="this is no volume's id", hint="`openstack volume list` prints the ids")
]
PublicKey = Annotated[str, matching(_public_key, _KEY, _KEYS)]
OthersKey = Annotated[str, matching(_others_key, rf"{_KEY}|\s*{_TOUCHED} [\s\S]*", _KEYS)]
KeyFile = Annotated[str, AfterValidator(_key_file)]
RuleNames = AfterValidator(_named)
