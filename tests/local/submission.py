"""Jobs that exist for the length of a test."""

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.local.diagnosis import diagnosis
from tests.local.environment import Cluster, eventually
from tests.local.jobs import APPWRAPPER, KUEUE


@contextlib.contextmanager
def submitted(cluster: Cluster, *wrappers: Mapping[str, Any]) -> Iterator[None]:
    """Create AppWrappers for the length of the context; then wait until they and their workloads are deleted.

    If the context fails, the state of the cluster is printed before the jobs are deleted.
    """
    try:
        for wrapper in wrappers:
            cluster.create(wrapper)
        yield
    except BaseException:
        print(diagnosis(cluster))
        raise
    finally:
        for wrapper in wrappers:
            name, namespace = wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]
            cluster.delete(wrapper["apiVersion"], wrapper["kind"], name, namespace)
        for wrapper in wrappers:
            left = (cluster, wrapper["metadata"]["namespace"], wrapper["metadata"]["name"])
            eventually(f"AppWrapper {left[1:]} is gone", partial(remains, *left), lambda found: not found)


def remains(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Return what remains of a job: its AppWrapper, which is deleted first, and its workloads."""
    wrapper = cluster.get(APPWRAPPER, "AppWrapper", name, namespace)
    workloads = [item["metadata"] for item in cluster.list(KUEUE, "Workload", namespace)]
    counted = [item["name"] for item in workloads if item["name"].startswith(f"appwrapper-{name}-")]
    return [name, *counted] if wrapper else counted
