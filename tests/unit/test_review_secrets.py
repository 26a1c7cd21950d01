"""The review reports changes of a stack's secrets without a key and without a value."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from review import secrets
from review.markdown import Review, StackReview, render
from review.secrets import Fate
from tests.unit.test_review import plan, pool

SALTED = {"encryptionsalt": "v1:one"}
CLOUD = {"secretsprovider": "azurekeyvault://v/keys/k", "encryptedkey": "one"}


def file(config: Mapping[str, Any], **more: Any) -> str:
    return yaml.safe_dump({"config": dict(config), **more})


def secret(text: str) -> dict[str, str]:
    return {"secure": f"v1:{text}"}


FATES: tuple[tuple[str, str | None, str | None, dict[str, Fate]], ...] = (
    ("unchanged", file({"m:a": secret("x")}, **SALTED), file({"m:a": secret("x")}, **SALTED), {}),
    ("changed", file({"m:a": secret("x")}, **SALTED), file({"m:a": secret("y")}, **SALTED), {"m:a": Fate.CHANGED}),
    ("added", file({}), file({"m:a": secret("x")}), {"m:a": Fate.ADDED}),
    ("removed", file({"m:a": secret("x")}), file({}), {"m:a": Fate.REMOVED}),
    ("of a new stack", None, file({"m:a": secret("x")}, **SALTED), {"m:a": Fate.ADDED}),
    ("of a removed stack", file({"m:a": secret("x")}), None, {"m:a": Fate.REMOVED}),
    ("nested", file({"m:a": {"b.c": [1, secret("x")]}}), file({"m:a": {"b.c": [1, secret("y")]}}),
     {'m:a["b.c"][1]': Fate.CHANGED}),
    ("laid open", file({"m:a": secret("x")}), file({"m:a": "s3cr3t"}), {"m:a": Fate.REVEALED}),
    ("closed", file({"m:a": "s3cr3t"}), file({"m:a": secret("x")}), {"m:a": Fate.HIDDEN}),
    ("encrypted with another passphrase", file({"m:a": secret("x"), "m:b": secret("z")}, **SALTED),
     file({"m:a": secret("y"), "m:b": secret("z")}, encryptionsalt="v1:two"),
     {"m:a": Fate.CHANGED, "m:b": Fate.STRANDED}),
    ("moved to a cloud's key", file({"m:a": secret("x")}, **SALTED), file({"m:a": secret("x")}, **CLOUD),
     {"m:a": Fate.STRANDED}),
    ("another name of the same key", file({"m:a": secret("x")}, **CLOUD),
     file({"m:a": secret("x")}, **{**CLOUD, "secretsprovider": "azurekeyvault://v/keys/k/1"}), {}),
    ("the default named", file({"m:a": secret("x")}, **SALTED),
     file({"m:a": secret("x")}, secretsprovider="passphrase", **SALTED), {}),
    ("no YAML", file({"m:a": secret("x")}), "config: {", {"m:a": Fate.REMOVED}),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after", "wanted"), [case[1:] for case in FATES], ids=[case[0] for case in FATES])
def test_what_becomes_of_a_secret_is_told_without_reading_it(
    before: str | None, after: str | None, wanted: dict[str, Fate]
) -> None:
    assert dict(secrets.compare(before, after)) == wanted


def test_a_changed_secret_is_a_change_of_its_stack() -> None:
    fates = secrets.compare(file({"m:a": secret("s3cr3t")}), file({"m:a": secret("0th3r")}))
    stack = StackReview(stack="aks", before=plan(pool()), after=plan(pool()), secrets=fates)
    text = render(Review(base="main", head="work", stacks=(stack,)))
    assert "| `aks` | 0 | 0 | 0 | 0 | 1 |" in text
    assert "- `m:a`: changed or encrypted again" in text
    assert "No stack changes" not in text
    assert "s3cr3t" not in text
    assert "0th3r" not in text


def test_secrets_are_told_of_a_stack_that_cannot_be_previewed() -> None:
    stack = StackReview(stack="aks", before_error="bad", secrets={"m:a": Fate.ADDED})
    text = render(Review(base="main", head="work", stacks=(stack,)))
    assert "- `m:a`: added" in text
    assert "cannot be previewed" in text
