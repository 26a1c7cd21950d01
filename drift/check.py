"""Compare each object of a stack with the cluster, and restore objects that differ."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from drift.cluster import Cluster, ClusterError, KindGoneError, RefusedError
from drift.compare import Difference, appliable, differences, has_secrets, overlaid, settled
from drift.state import SECRET, Declared, Manifest

_AT_ONCE: Final = 8
_CREATION_SECONDS: Final = 30
_ATTEMPTS: Final = 5
_CONFLICT: Final = 409
_INVALID: Final = 422

_MADE_ANEW: Final = frozenset({"ClusterRoleBinding", "RoleBinding"})
"""Kinds that are deleted and created if the API server rejects the change: the API server fixes their role at creation,
and they hold no other data."""

_LAG_SECONDS: Final = 1.0
_UNSEEN: Final = "another writer changed a value that the state keeps encrypted. It is not decrypted here"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result for one object.

    gone: why the object does not exist, None if it does. trouble: why it could not be compared, None if it could.
    live, target: the object in the cluster and the expected one. kept: why it cannot be restored here, None if it can.
    """

    declared: Declared
    differences: tuple[Difference, ...] = ()
    gone: str | None = None
    trouble: str | None = None
    live: Manifest | None = None
    target: Manifest | None = None
    kept: str | None = None

    @property
    def drifted(self) -> bool:
        """Return whether the object differs from what is declared."""
        return self.gone is not None or bool(self.differences)


def check(cluster: Cluster, objects: Sequence[Declared]) -> list[Finding]:
    """Compare each object with the cluster. Does not change any.

    Raises ClusterError if the API server does not answer, or is not the one of the stack's cluster.
    """
    known = {each: cluster.knows(sample) for each, sample in {_kind(each): each for each in objects}.items()}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        read = list(threads.map(lambda each: _read(cluster, each, known=known[_kind(each)]), objects))
        _require_same_cluster(cluster, read)
        return list(threads.map(lambda finding: _compared(cluster, finding), read))


def put_all_back(cluster: Cluster, found: Sequence[Finding]) -> list[Finding]:
    """Restore all objects, as `put_back` does each. Return the findings that remain.

    Objects that could not be compared are compared again afterwards, because another object may have been the reason,
    for example a second default PriorityClass.
    """
    done = [put_back(cluster, finding) for finding in found]
    return [put_back(cluster, _again(cluster, each)) if each.trouble is not None else each for each in done]


def _again(cluster: Cluster, finding: Finding) -> Finding:
    """Compare once more. Admission by the API server lags a moment behind the last write."""
    found = finding
    for _ in range(_ATTEMPTS):
        found = _compared(cluster, _read(cluster, finding.declared, known=cluster.knows(finding.declared)))
        if found.trouble is None:
            break
        time.sleep(_LAG_SECONDS)
    return found


def put_back(cluster: Cluster, finding: Finding) -> Finding:
    """Restore one object, unless the fields that differ have changed since the comparison.

    Returns a finding without the restored fields. Its `kept` says why other fields were not restored.
    """
    if finding.kept is not None or finding.trouble is not None or not finding.drifted:
        return finding
    try:
        if finding.target is None:
            _create(cluster, finding.declared)
        else:
            _replace(cluster, finding)
    except (RefusedError, KindGoneError) as error:
        return replace(finding, kept=str(error))
    left = tuple(each for each in finding.differences if each.declared is SECRET)
    return Finding(declared=finding.declared, differences=left, kept=_UNSEEN if left else None)


def _kind(declared: Declared) -> tuple[str, str]:
    return declared.api_version, declared.kind


def _read(cluster: Cluster, declared: Declared, *, known: bool) -> Finding:
    kept = "a part of it is encrypted and is not decrypted here" if has_secrets(declared) else None
    if not known:
        gone = f"the cluster no longer serves its kind ({declared.api_version} {declared.kind})"
        return Finding(declared=declared, gone=gone, kept=kept)
    try:
        live = cluster.read(declared)
    except RefusedError as error:
        return Finding(declared=declared, trouble=f"it cannot be read: {error}")
    if live is None:
        return Finding(declared=declared, gone="it no longer exists", kept=kept)
    if since := live["metadata"].get("deletionTimestamp"):
        gone = f"it has been in deletion since {since}"
        return Finding(declared=declared, gone=gone, live=live, kept="the deletion must end first")
    return Finding(declared=declared, live=live)


def _require_same_cluster(cluster: Cluster, read: Sequence[Finding]) -> None:
    """Raise ClusterError if no object has its recorded uid. An object keeps its uid until it is deleted."""
    known = [each for each in read if each.declared.uid is not None and each.trouble is None]
    same = [each for each in known if each.live and each.live["metadata"]["uid"] == each.declared.uid]
    if known and not same:
        raise ClusterError(
            f"none of the stack's {len(known)} objects is in the cluster at {cluster.server}: this is another cluster "
            "than the stack's, or it is new. Name the stack's with --kubeconfig and --context (`pulumi up` fills "
            "a new cluster)"
        )


def _compared(cluster: Cluster, finding: Finding) -> Finding:
    """Compare an object with the cluster. Reads again, because a controller may write to it meanwhile."""
    for _ in range(_ATTEMPTS):
        if finding.live is None or finding.gone is not None:
            return finding
        try:
            return _judged(cluster, finding.declared, finding.live)
        except RefusedError as error:
            refused = error
        if refused.status != _CONFLICT:
            break
        finding = _read(cluster, finding.declared, known=True)
    return replace(finding, trouble=f"the API server rejects the dry run of the declared object: {refused}")


def _judged(cluster: Cluster, declared: Declared, live: Manifest) -> Finding:
    """Return the finding for an existing object. Raises RefusedError if the API server cannot compute the result."""
    target, kept = _target(cluster, declared, live)
    found = differences(declared, target, live)
    if kept is None and found and all(each.declared is SECRET for each in found):
        kept = _UNSEEN
    return Finding(declared=declared, live=live, target=target, differences=found, kept=kept if found else None)


def _target(cluster: Cluster, declared: Declared, live: Manifest) -> tuple[Manifest, str | None]:
    """Return the expected object, and why the API server would reject the change, None if it would not.

    Raises RefusedError if the API server cannot compute it.
    """
    body = appliable(declared, live)
    try:
        applied = cluster.applied(declared, body)
    except RefusedError as error:
        if error.status != _INVALID:
            raise
        # The object conflicts with the declared one or cannot be changed into it. Compute the result without it.
        applied = overlaid(cluster.applied(declared, body, name=f"{declared.name}-drift"), live)
    target = settled(declared, applied, live)
    if not differences(declared, target, live):
        return target, None
    try:
        # A field that was removed may have a default.
        return settled(replace(declared, partial=True), cluster.replaced(declared, target, dry_run=True), live), None
    except RefusedError as error:
        if error.status == _CONFLICT:
            raise
        return target, None if _is_made_anew(declared, error) else str(error)


def _create(cluster: Cluster, declared: Declared) -> None:
    """Create an object. Retries while the object that contains it is being created."""
    body = appliable(declared, None)
    deadline = time.monotonic() + _CREATION_SECONDS
    while True:
        try:
            cluster.create(declared, body)
            return
        except (RefusedError, KindGoneError) as error:
            waits = isinstance(error, KindGoneError) or error.status == 404
            if not waits or time.monotonic() > deadline:
                raise
        time.sleep(1)


def _replace(cluster: Cluster, finding: Finding) -> None:
    """Replace an object. Retries if a controller writes to it meanwhile."""
    current = finding
    for attempt in range(_ATTEMPTS):
        target = current.target
        if target is None or current.differences != finding.differences:
            break
        try:
            written = cluster.replaced(finding.declared, target, dry_run=False)
            wanted = settled(replace(finding.declared, partial=True), target, written)
            if any(each.declared is not SECRET for each in differences(finding.declared, wanted, written)):
                raise RefusedError(
                    0,
                    "a controller or webhook changed it back at once. `kubectl get -o yaml --show-managed-fields` "
                    "names it: stop it, or declare its values, and run the command again",
                )
            return
        except RefusedError as error:
            if _is_made_anew(finding.declared, error):
                cluster.delete(finding.declared, target)
                _create(cluster, finding.declared)
                return
            if error.status != _CONFLICT or attempt + 1 == _ATTEMPTS:
                raise
        current = _compared(cluster, _read(cluster, finding.declared, known=True))
    raise RefusedError(_CONFLICT, "it changed during the comparison: run the command again")


def _is_made_anew(declared: Declared, error: RefusedError) -> bool:
    return error.status == _INVALID and declared.kind in _MADE_ANEW
