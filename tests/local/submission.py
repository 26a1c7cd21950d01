"""Jobs that are there for the length of a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from tests.local.diagnosis import diagnosis
from tests.local.environment import Cluster, eventually


@contextlib.contextmanager
def submitted(cluster: Cluster, *wrappers: Mapping[str, Any]) -> Iterator[None]:
    """Create AppWrappers for the length of the context; wait until they are gone afterwards.

    What the cluster holds is printed where the context fails: afterwards the jobs are gone.
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
            name, namespace = wrapper["metadata"]["name"], wrapper["metadata"]["namespace"]
            eventually(
                f"AppWrapper {namespace}/{name} is gone",
                lambda w=wrapper, n=name, s=namespace: cluster.get(w["apiVersion"], w["kind"], n, s),
                lambda found: found is None,
            )
