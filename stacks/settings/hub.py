"""What Hugging Face's hub calls its models, and the states of what it holds."""

import re
from typing import Annotated, Final, TypeAlias

from stacks.settings.model import form, matching, reject

_PART: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"

_SHORTENED: Final = r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{7,39}"
_NO_REFERENCE: Final = r".*(?:\.\.|//|/\.|\.lock(?:/|$))"
"""Of what is in none (git, `check-ref-format`): two dots, an empty part, one that begins with . or ends with .lock."""
_REFERENCE: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._+/-]{0,253}[A-Za-z0-9_+-])?"
_REVISION: Final = re.compile(rf"(?!{_SHORTENED}$)(?!{_NO_REFERENCE}){_REFERENCE}")
_REVISIONS: Final = (
    "a commit's 40 digits, or the name of a branch or tag, as git allows them of letters, digits and . _ - + /"
)


def _revision(value: str) -> str:
    if re.fullmatch(_SHORTENED, value):
        reject(
            "this is a shortened commit hash, which the hub does not accept",
            "write all 40 digits, from the list of commits under Files and versions",
            expected=_REVISIONS,
        )
    if not _REVISION.fullmatch(value):
        reject(
            "this is not a valid name of a commit, branch or tag",
            "use a name from the menu of branches under Files and versions, such as main",
            expected=_REVISIONS,
        )
    return value


ModelName: TypeAlias = Annotated[
    str,
    form(
        rf"{_PART}(/{_PART})?",
        "an owner and a name of letters, digits and . _ -, such as ibm-granite/granite-3.2-8b-instruct",
        "this is not a valid model name of the Hugging Face Hub",
        "write it as the model's page shows it",
    ),
]
Revision: TypeAlias = Annotated[str, matching(_revision, _REVISION.pattern, _REVISIONS)]
"""A branch, a tag or a commit. The hub takes no shortened hash (huggingface_hub, `guides/download`)."""
