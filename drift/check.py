"""Looks at each object of a stack, and puts back what is not as declared."""

from __future__ import annotations

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
"""Kinds whose objects are deleted and created where the API server refuses to change them back: their role is fixed at
creation, and nothing is lost with them."""

_LAG_SECONDS: Final = 1.0
_UNSEEN: Final = "somebody else has written what the state keeps encrypted, which is not decrypted here"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one object.

    gone: why it is not there, None where it is. trouble: why it could not be compared, None where it could.
    live, target: how it is, and how it should be. kept: why it cannot be put back here, None where it can.
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
        """Whether the object is not as declared."""
        return self.gone is not None or bool(self.differences)


def check(cluster: Cluster, objects: Sequence[Declared]) -> list[Finding]:
    """Compare each object with what lives; nothing is changed.

    Raises ClusterError where the API server does not answer, or is another cluster than the stack's.
    """
    known = {each: cluster.knows(sample) for each, sample in {_kind(each): each for each in objects}.items()}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        read = list(threads.map(lambda each: _read(cluster, each, known=known[_kind(each)]), objects))
        _require_same_cluster(cluster, read)
        return list(threads.map(lambda finding: _compared(cluster, finding), read))


def put_all_back(cluster: Cluster, found: Sequence[Finding]) -> list[Finding]:
    """Bring all objects to what is declared, as `put_back` does each.

    What could not be compared is compared again after the others: what they were may have been the reason, as with a
    second PriorityClass that is the default.
    """
    done = [put_back(cluster, finding) for finding in found]
    return [put_back(cluster, _again(cluster, each)) if each.trouble is not None else each for each in done]


def _again(cluster: Cluster, finding: Finding) -> Finding:
    """Compare once more; what the API server admits by lags a moment behind what was just written."""
    found = finding
    for _ in range(_ATTEMPTS):
        found = _compared(cluster, _read(cluster, finding.declared, known=cluster.knows(finding.declared)))
        if found.trouble is None:
            break
        time.sleep(_LAG_SECONDS)
    return found


def put_back(cluster: Cluster, finding: Finding) -> Finding:
    """Bring one object to what is declared, unless what differs has changed since it was compared.

    Returns a finding without what was put back; `kept` says why the rest was not.
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
    kept = "a part of it is kept encrypted, which is not decrypted here" if has_secrets(declared) else None
    if not known:
        gone = f"the cluster does not know its kind any more ({declared.api_version} {declared.kind})"
        return Finding(declared=declared, gone=gone, kept=kept)
    try:
        live = cluster.read(declared)
    except RefusedError as error:
        return Finding(declared=declared, trouble=f"it cannot be read: {error}")
    if live is None:
        return Finding(declared=declared, gone="it is not there any more", kept=kept)
    if since := live["metadata"].get("deletionTimestamp"):
        gone = f"it is being deleted since {since}"
        return Finding(declared=declared, gone=gone, live=live, kept="it has to be gone before it can be made anew")
    return Finding(declared=declared, live=live)


def _require_same_cluster(cluster: Cluster, read: Sequence[Finding]) -> None:
    """Raise ClusterError where no object is the one that the engine has made: each has an identity for its life."""
    known = [each for each in read if each.declared.uid is not None and each.trouble is None]
    same = [each for each in known if each.live and each.live["metadata"]["uid"] == each.declared.uid]
    if known and not same:
        raise ClusterError(
            f"none of the stack's {len(known)} objects lives in the cluster at {cluster.server}, which is another one "
            "than the stack's, or was made anew; name the stack's by --kubeconfig and --context (`pulumi up` fills a "
            "cluster that was made anew)"
        )


def _compared(cluster: Cluster, finding: Finding) -> Finding:
    """Compare an object with what lives; a controller may write to it meanwhile, so that it is read again."""
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
    return replace(finding, trouble=f"the API server refuses the dry run of what is declared: {refused}")


def _judged(cluster: Cluster, declared: Declared, live: Manifest) -> Finding:
    """Raise RefusedError where the API server cannot tell how the object should be."""
    target, kept = _target(cluster, declared, live)
    found = differences(declared, target, live)
    if kept is None and found and all(each.declared is SECRET for each in found):
        kept = _UNSEEN
    return Finding(declared=declared, live=live, target=target, differences=found, kept=kept if found else None)


def _target(cluster: Cluster, declared: Declared, live: Manifest) -> tuple[Manifest, str | None]:
    """Return how a live object should be, and why the API server would refuse to make it so, None where it would not.

    Raises RefusedError where the API server cannot tell.
    """
    body = appliable(declared, live)
    try:
        applied = cluster.applied(declared, body)
    except RefusedError as error:
        if error.status != _INVALID:
            raise
        # What lives goes ill together with what is declared, or cannot be changed into it: see it without what lives.
        applied = overlaid(cluster.applied(declared, body, name=f"{declared.name}-drift"), live)
    target = settled(declared, applied, live)
    if not differences(declared, target, live):
        return target, None
    try:
        # What was taken out may have a default.
        return settled(replace(declared, partial=True), cluster.replaced(declared, target, dry_run=True), live), None
    except RefusedError as error:
        if error.status == _CONFLICT:
            raise
        return target, None if _is_made_anew(declared, error) else str(error)


def _create(cluster: Cluster, declared: Declared) -> None:
    """Create an object; what it is part of may just have been created, and take a moment."""
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
    """Replace an object; a controller may write to it meanwhile, which is no reason to leave what differs."""
    current = finding
    for attempt in range(_ATTEMPTS):
        target = current.target
        if target is None or current.differences != finding.differences:
            break
        try:
            written = cluster.replaced(finding.declared, target, dry_run=False)
            wanted = settled(replace(finding.declared, partial=True), target, written)
            if any(each.declared is not SECRET for each in differences(finding.declared, wanted, written)):
                raise RefusedError(0, "the API server took it, and something in the cluster changed it at once")
            return
        except RefusedError as error:
            if _is_made_anew(finding.declared, error):
                cluster.delete(finding.declared, target)
                _create(cluster, finding.declared)
                return
            if error.status != _CONFLICT or attempt + 1 == _ATTEMPTS:
                raise
        current = _compared(cluster, _read(cluster, finding.declared, known=True))
    raise RefusedError(_CONFLICT, "it was changed again while it was compared: run the command again")


def _is_made_anew(declared: Declared, error: RefusedError) -> bool:
    return error.status == _INVALID and declared.kind in _MADE_ANEW
