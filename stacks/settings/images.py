"""Names of images, as container runtimes take them (distribution/reference, reference.go and regexp.go)."""

import re
from typing import Annotated, Final, TypeAlias

from stacks.settings.model import matching, reject

_HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]+)?"
_PART: Final = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_NAME: Final = rf"({_HOST}/)?{_PART}(/{_PART})*"
PREFIX: Final = re.compile(rf"{_HOST}(/{_PART})*")
"""A registry, and the beginning of a path on it."""
_REPOSITORY: Final = re.compile(_NAME)
_REFERENCE: Final = re.compile(rf"{_NAME}(:{_TAG}(@{_DIGEST})?|@{_DIGEST})")
_REPOSITORIES: Final = "a registry and a path in lower case, such as registry.example.org/team/nccltest"
_REFERENCES: Final = (
    "a registry, a path in lower case and a tag or digest, such as registry.example.org/team/lab:<version>"
)


def _repository(value: str) -> str:
    last = value.rpartition("/")[2]
    if "://" not in value and (":" in last or "@" in last):
        reject(
            "the image's name includes a tag or a digest",
            "remove the tag or digest here, and write a tag into the key tag next to this one",
            expected=_REPOSITORIES,
        )
    if not _REPOSITORY.fullmatch(value):
        reject(wrong(value), "write the name as `docker pull` takes it", expected=_REPOSITORIES)
    return value


def _reference(value: str) -> str:
    if value.rpartition(":")[2] == "latest":
        reject(
            "this tag moves between images, so the running version is unknown",
            "use a tag that does not move, such as a version or a date",
            expected=_REFERENCES,
        )
    if _REPOSITORY.fullmatch(value):
        reject("the image has no tag", "add a tag or a digest", expected=_REFERENCES)
    if not _REFERENCE.fullmatch(value):
        reject(wrong(value), "write the name as `docker pull` takes it", expected=_REFERENCES)
    return value


def wrong(value: str) -> str:
    """Return why a text is not an image's name."""
    if "://" in value:
        return "an image's name cannot have a scheme"
    if re.search(r":.*@(?!sha256:)", value):
        return "an image's name cannot have a password, which every reader of the configuration could see"
    if re.search(r"\s", value):
        return "this name contains spaces"
    if value != value.lower():
        return "this is not an image's name: a path on a registry is in lower case"
    return "this is not an image's name"


Repository: TypeAlias = Annotated[str, matching(_repository, _REPOSITORY.pattern, _REPOSITORIES)]
"""An image's name without a tag."""
Reference: TypeAlias = Annotated[str, matching(_reference, _REFERENCE.pattern, _REFERENCES)]
"""An image's name with its tag or digest."""
