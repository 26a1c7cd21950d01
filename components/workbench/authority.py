"""The certificate authority of the object store, OpenShift's for Services, and how pods trust it.

OpenShift creates a certificate for each Service with an annotation, as a Secret with `tls.crt` and `tls.key`, for
`<service>.<namespace>.svc`, and renews it. It also writes its own certificate into ConfigMaps with an annotation
(openshift/service-ca-operator, README.md; OpenShift documentation, "Securing service traffic using service serving
certificates").
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi

from components.kubernetes.manifests import Document
from components.kubernetes.resources import Resources
from components.kubernetes.security import UNPRIVILEGED

CONFIG_MAP: Final = "object-store-authority"
KEY: Final = "service-ca.crt"
BUNDLE: Final = "/etc/object-store/ca-bundle.crt"
"""A pod's file of trusted authorities: the public ones and the cluster's."""
PROGRAM: Final = """
import pathlib, sys, certifi
own, bundle = map(pathlib.Path, sys.argv[1:])
bundle.write_text(certifi.contents() + own.read_text())
"""
_SERVING: Final = "service.beta.openshift.io/serving-cert-secret-name"
_INJECTED: Final = "service.beta.openshift.io/inject-cabundle"
_GIVEN: Final = "/etc/authority"
_RESOURCES: Final = Resources(cpu_request="50m", memory_request="64Mi", cpu_limit="500m", memory_limit="128Mi")


def certified(secret: str) -> Mapping[str, str]:
    """Return the annotation of a Service whose certificate is written into this Secret of its namespace."""
    return {_SERVING: secret}


def config_map(namespace: pulumi.Input[str]) -> Document:
    """Return the ConfigMap that the cluster fills. Pods that mount its key wait for it."""
    metadata = {"name": CONFIG_MAP, "namespace": namespace, "annotations": {_INJECTED: "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def trusting(pod: Document, variables: Sequence[str]) -> Document:
    """Return a pod's spec whose first container also trusts the cluster's authority.

    variables: environment variables with the path of the authorities for its programs. Its image needs Python with
    certifi, which is installed with `requests`.
    """
    main, *others = pod["containers"]
    shared = {"name": "authorities", "mountPath": BUNDLE.rpartition("/")[0]}
    bundler = {
        "name": "authorities",
        "image": main["image"],
        "command": ["python", "-c", PROGRAM, f"{_GIVEN}/{KEY}", BUNDLE],
        "resources": _RESOURCES.body(),
        "securityContext": dict(UNPRIVILEGED),
        "volumeMounts": [{"name": "authority", "mountPath": _GIVEN, "readOnly": True}, shared],
    }
    trusts = {
        **main,
        "env": [*main.get("env", ()), *({"name": name, "value": BUNDLE} for name in variables)],
        "volumeMounts": [*main.get("volumeMounts", ()), {**shared, "readOnly": True}],
    }
    given = {"name": CONFIG_MAP, "items": [{"key": KEY, "path": KEY}]}
    own = [{"name": "authority", "configMap": given}, {"name": "authorities", "emptyDir": {}}]
    return {
        **pod,
        "initContainers": [*pod.get("initContainers", ()), bundler],
        "containers": [trusts, *others],
        "volumes": [*pod.get("volumes", ()), *own],
    }
