"""The job that somebody asks about, as a file has it. What is no job, or cannot be meant, is told at once."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from components import names
from components.job_kinds import APPWRAPPER, SUBMITTED

Document = dict[str, Any]

KINDS: Final[Mapping[str, str]] = {kind.kind: kind.api for kind in SUBMITTED}
"""The kinds that can be asked about, with their version: those that members may create."""
MOST_CHARACTERS: Final = 3 << 19
"""What an API server takes of an object (etcd, `--max-request-bytes`: 1.5 MiB)."""
_DEEPEST: Final = 100


class ManifestError(ValueError):
    """A file is no job that could be asked about; the message names what is wrong and what to do."""


@dataclass(frozen=True)
class Job:
    """A job of one document."""

    document: Document

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.document["kind"])

    @property
    def version(self) -> str:
        """Its API version."""
        return str(self.document["apiVersion"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document["metadata"]["name"])

    @property
    def queue(self) -> str:
        """Its LocalQueue. AppWrapper fills in the one that every team has; no other kind has a default."""
        labels = self.document["metadata"].get("labels") or {}
        return str(labels.get(names.QUEUE_LABEL) or names.LOCAL_QUEUE)


def read(text: str, team: str) -> Job:
    """Return the job of a file, in a team's namespace. Raises ManifestError for what is none.

    Objects of other kinds have to be wrapped in the job, as the platform's own are: one file, one job.
    """
    documents = _documents(text)
    if len(documents) != 1:
        found = ", ".join(map(_called, documents))
        raise ManifestError(
            f"the file has {len(documents)} objects ({found or 'none'}): ask about one job, with all that it needs "
            "wrapped in its AppWrapper"
        )
    (document,) = documents
    _check_kind(document)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is not None and not isinstance(name, str):
        raise ManifestError(f"metadata.name is {name!r}, which YAML takes for no text: write it in quotes")
    if not isinstance(metadata, dict) or not name:
        raise ManifestError("the job has no metadata.name: give it one")
    if not isinstance(document.get("spec"), dict):
        raise ManifestError("the job has no spec: there is nothing to run")
    namespace = metadata.get("namespace") or team
    if namespace != team:
        raise ManifestError(f"the job is for namespace {namespace}, and the question for team {team}: name one of them")
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
        hint = f"did you mean {spelled[meant[0]]}?" if meant else f"wrap it in an AppWrapper, or use {', '.join(KINDS)}"
        raise ManifestError(f"a {kind} is no job that members submit: {hint}")
    if version != KINDS[kind]:
        raise ManifestError(f"{kind} has the apiVersion {version}: write {KINDS[kind]}")


def _check_queue(kind: str, labels: object) -> None:
    """Hold a job to a queue. AppWrapper fills one in."""
    if labels is not None and not isinstance(labels, dict):
        raise ManifestError("metadata.labels is no mapping of names and texts: write one")
    queue = (labels or {}).get(names.QUEUE_LABEL)
    if queue is not None and not isinstance(queue, str):
        raise ManifestError(
            f"the label {names.QUEUE_LABEL} is {queue!r}, which YAML takes for no text: write it in quotes"
        )
    if kind != APPWRAPPER.kind and not queue:
        raise ManifestError(
            f"the job names no queue, and nothing runs without one: add the label {names.QUEUE_LABEL}: "
            f"{names.LOCAL_QUEUE}"
        )


def check_resources(job: Job, known: Sequence[str]) -> None:
    """Refuse a resource whose name differs from a known one by its capitals alone.

    known: what queues cover. Raises ManifestError.
    """
    spelled = {name.lower(): name for name in known}
    for name in sorted(set(_resources(job.document["spec"]))):
        right = spelled.get(name.lower())
        if right is not None and right != name:
            raise ManifestError(f"the job asks for {name}, which no node has: the resource's name is {right}")


class _Loader(yaml.SafeLoader):
    """Reads YAML as kubectl does, which makes no dates of texts."""

    yaml_implicit_resolvers = {  # noqa: RUF012, declared so by PyYAML
        first: [each for each in found if not each[0].endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _Reader:
    """Makes JSON of what YAML says, of one file: what stands there once may be meant a million times."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON has it. Raises ManifestError for one that it has not, and for too much."""
        self._left -= 1 + (len(value) if isinstance(value, str) else 0)
        if self._left < 0:
            raise ManifestError("the file holds more than the 1.5 MiB that an API server takes")
        if depth > _DEEPEST:
            raise ManifestError(f"the file is nested deeper than {_DEEPEST} levels, or within itself")
        if isinstance(value, dict):
            return {self._key(key): self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item, depth + 1) for item in value]
        if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        raise ManifestError(f"the file holds {value!r:.100}, which Kubernetes has no form for")

    def _key(self, key: Any) -> str:
        """Return a key as kubectl writes it."""
        if isinstance(key, str | int) and not isinstance(key, bool):
            return str(key)
        raise ManifestError(f"the file has the key {key!r:.100}, which YAML takes for no text: write it in quotes")


def _documents(text: str) -> list[Document]:
    try:
        reader = _Reader()
        found = [reader.plain(item) for item in yaml.load_all(text, _Loader) if item is not None]
    except ManifestError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ManifestError(f"the file is not YAML: {' '.join(str(error).split())}") from error
    for item in found:
        if not isinstance(item, dict):
            raise ManifestError(
                f"the file holds {type(item).__name__} where an object with apiVersion and kind belongs"
            )
    return found


def _resources(value: Any) -> Iterator[str]:
    """Yield the names of all resources that containers anywhere beneath ask for."""
    if isinstance(value, dict):
        asked = value.get("resources")
        for part in ("requests", "limits") if isinstance(asked, dict) else ():
            amounts = asked.get(part) if isinstance(asked, dict) else None
            yield from amounts if isinstance(amounts, dict) else ()
        for item in value.values():
            yield from _resources(item)
    elif isinstance(value, list):
        for item in value:
            yield from _resources(item)
