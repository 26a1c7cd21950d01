"""The service accounts and role bindings of each namespace in OpenShift, recreated if deleted.

Clusters with the capabilities Build, DeploymentConfig and ImageRegistry have them, which is the default from 4.16 on.
Sources: openshift/openshift-controller-manager, pkg/authorization/defaultrolebindings/project_policy.go and
pkg/cmd/controller/serviceaccount.go. Without an image registry here, accounts do not get pull secrets.
"""

import functools
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml

from emulator.cluster.api import Object
from emulator.cluster.store import Key

_DOCUMENTS: Final = Path(__file__).with_suffix(".yaml").read_text()


def lacking(namespaces: Iterable[Object], accounts: Container[Key], bindings: Container[Key]) -> Iterator[Object]:
    """Yield the missing accounts and RoleBindings of namespaces. accounts, bindings: the existing ones."""
    for namespace in namespaces:
        if "deletionTimestamp" in namespace["metadata"]:
            continue
        name = namespace["metadata"]["name"]
        for document in _documents(name):
            there = accounts if document["kind"] == "ServiceAccount" else bindings
            if (name, document["metadata"]["name"]) not in there:
                yield document


@functools.cache
def _documents(namespace: str) -> list[Object]:
    return list(yaml.safe_load_all(_DOCUMENTS.format(namespace=namespace)))
