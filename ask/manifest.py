"""The job of a question, read from a file. Invalid jobs are reported at once."""

import difflib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ask.reading import MOST_OF_A_FILE, UnreadableError, documents
from components import names
from components.job_kinds import APPWRAPPER, POD, RUN, SUBMITTED
from components.kubernetes.quantity import Quantity, QuantityError

Document = dict[str, Any]

KINDS: Final[Mapping[str, str]] = {kind.kind: kind.api for kind in SUBMITTED}
"""The kinds that a question supports, with their API version. Members can create them."""

_WRAPPED: Final = [kind.kind for kind in (*RUN, POD)]
"""Kinds that run in an AppWrapper."""
_LONGEST: Final = 63
"""Longest value of a label, in characters (k8s.io/apimachinery, pkg/util/validation)."""


class ManifestError(ValueError):
    """The file is not a valid job. The message states the problem and the fix."""


@dataclass(frozen=True)
class Job:
    """A job of one document."""

    document: Document

    @property
    def kind(self) -> str:
        return str(self.document["kind"])

    @property
    def version(self) -> str:
        return str(self.document["apiVersion"])

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def queue(self) -> str:
        """The job's LocalQueue. AppWrapper fills in every team's default queue. Other kinds have no default."""
        labels = self.document["metadata"].get("labels") or {}
        return str(labels.get(names.QUEUE_LABEL) or names.LOCAL_QUEUE)


def text_of(file: str) -> str:
    """Return the text of a file, or of the standard input for `-`: enough of it to show that it is too large.

    Raises ManifestError if it is not text.
    """
    try:
        if file == "-":
            return sys.stdin.buffer.read(MOST_OF_A_FILE + 1).decode()
        with Path(file).open("rb") as opened:
            return opened.read(MOST_OF_A_FILE + 1).decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{file} is not a text file: {error}") from error


def read(text: str, team: str) -> Job:
    """Return the job of a file, in a team's namespace. Raises ManifestError unless the file has exactly one valid job.

    Other objects must be wrapped in the job or exist in the cluster: one file, one job.
    """
    found = read_objects(text)
    if len(found) != 1:
        called = ", ".join(map(_called, found))
        raise ManifestError(
            f"the file has {len(found)} objects ({called or 'none'}): ask about one job. Wrap the others "
            "in its AppWrapper, or create them in the cluster first"
        )
    return check(found[0], team)


def check(document: Document, team: str) -> Job:
    """Return a job in a team's namespace. Raises ManifestError unless it is valid."""
    _check_kind(document)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is not None and not isinstance(name, str):
        raise ManifestError(f"metadata.name is {name!r}, which YAML takes for no text: write it in quotes")
    if not isinstance(metadata, dict) or not name:
        raise ManifestError("the job has no metadata.name: give it one")
    if len(name) > _LONGEST:
        raise ManifestError(
            f"metadata.name has {len(name)} characters, and the job's pods carry it in a label, which holds "
            f"{_LONGEST}: write a shorter one"
        )
    if not isinstance(document.get("spec"), dict):
        raise ManifestError("the job has no spec: add one")
    namespace = metadata.get("namespace") or team
    if namespace != team:
        raise ManifestError(f"the job is for namespace {namespace}, and --team names {team}: name one of them")
    _check_queue(document["kind"], metadata.get("labels"))
    return Job({**document, "metadata": {**metadata, "namespace": team}})


def _called(document: Document) -> str:
    metadata = document.get("metadata")
    return f"{document.get('kind')} {metadata.get('name') if isinstance(metadata, dict) else None}"


def _check_kind(document: Document) -> None:
    kind, version = str(document.get("kind")), document.get("apiVersion")
    if kind not in KINDS:
        spelled = {name.lower(): name for name in KINDS}
        meant = difflib.get_close_matches(kind.lower(), spelled, n=1, cutoff=0.8)
        if meant:
            hint = f"did you mean {spelled[meant[0]]}?"
        elif kind in _WRAPPED:
            hint = f"wrap it in an AppWrapper, or use {', '.join(KINDS)}"
        else:
            hint = f"use {', '.join(KINDS)}; an AppWrapper holds {', '.join(_WRAPPED)}"
        raise ManifestError(f"a {kind} is not a job that members submit: {hint}")
    if version != KINDS[kind]:
        raise ManifestError(f"{kind} has the apiVersion {version}: write {KINDS[kind]}")


def _check_queue(kind: str, labels: object) -> None:
    """Require a queue for a job. AppWrapper fills one in."""
    if labels is not None and not isinstance(labels, dict):
        raise ManifestError("metadata.labels is not a mapping of names to texts: write one")
    queue = (labels or {}).get(names.QUEUE_LABEL)
    if queue is not None and not isinstance(queue, str):
        raise ManifestError(
            f"the label {names.QUEUE_LABEL} is {queue!r}, which YAML takes for no text: write it in quotes"
        )
    if kind != APPWRAPPER.kind and not queue:
        raise ManifestError(
            f"the job names no queue, and needs one to run: add the label {names.QUEUE_LABEL}: {names.LOCAL_QUEUE}"
        )


def check_resources(job: Job, known: Sequence[str]) -> None:
    """Reject an invalid amount, and a resource whose name differs from a known one only by capitals.

    known: resources that queues cover. Raises ManifestError.
    """
    spelled = {name.lower(): name for name in known}
    for name, amount in _resources(job.document["spec"]):
        try:
            Quantity.parse(_as_read(amount))
        except QuantityError as error:
            raise ManifestError(
                f"the job asks for {name}: {amount!r:.100}, and {error}: write a number with one of Kubernetes' "
                "suffixes, such as 500m, 8 or 64Gi"
            ) from error
        right = spelled.get(name.lower())
        if right is not None and right != name:
            raise ManifestError(f"the job asks for {name}, which no node has: the resource's name is {right}")


def _as_read(amount: Any) -> Any:
    """Return an amount as the API server reads it: without blanks, a number by its digits, null as 0."""
    if isinstance(amount, float) and math.isfinite(amount):
        return format(Decimal(repr(amount)), "f")
    return amount.strip() if isinstance(amount, str) else amount or 0


def read_objects(text: str) -> list[Document]:
    """Return the objects of a file; raises ManifestError."""
    try:
        found = documents(text)
    except UnreadableError as error:
        raise ManifestError(str(error)) from error
    for item in found:
        if not isinstance(item, dict):
            raise ManifestError(
                f"the file holds {type(item).__name__} where an object with apiVersion and kind belongs"
            )
    return found


def _resources(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield all resources that containers at any depth request, with their amounts."""
    if isinstance(value, dict):
        asked = value.get("resources")
        for part in ("requests", "limits") if isinstance(asked, dict) else ():
            amounts = asked.get(part) if isinstance(asked, dict) else None
            yield from amounts.items() if isinstance(amounts, dict) else ()
        for item in value.values():
            yield from _resources(item)
    elif isinstance(value, list):
        for item in value:
            yield from _resources(item)
