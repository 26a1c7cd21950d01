"""The real kube-state-metrics for a local cluster, with the chart's arguments, rules and rights."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from emulator.paths import Paths
from emulator.toolchain import KUBERNETES_1_36, Toolchain
from lab.dashboards.chart import rendered
from lab.dashboards.ports import free_port
from runner.report import connect

_NAME = "dashboards"
"""Name of the release and its namespace, different from those of a stack."""
_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


@contextlib.contextmanager
def state_metrics(paths: Paths, folder: Path) -> Iterator[Callable[[float], str]]:
    """Run it; yield a reader of its metrics. folder: for its files. Its account is deleted at the end."""
    documents = {each["kind"]: each for each in rendered(paths, _NAME, _NAME, part="kube-state-metrics")}
    with _account(connect(paths.kubeconfig), documents) as token:
        kubeconfig, rules = folder / "kubeconfig", folder / "state-metrics.yaml"
        kubeconfig.write_text(yaml.safe_dump(_as_account(paths.kubeconfig, token)))
        kubeconfig.chmod(0o600)
        (text,) = documents["ConfigMap"]["data"].values()
        rules.write_text(text)
        port = free_port()
        command = [
            str(Toolchain(paths).folder(KUBERNETES_1_36) / "kube-state-metrics"),
            *_arguments(documents["Deployment"], rules),
            f"--port={port}",
            f"--telemetry-port={free_port()}",
            "--host=127.0.0.1",
            "--telemetry-host=127.0.0.1",
            f"--kubeconfig={kubeconfig}",
        ]
        with (folder / "state-metrics.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as ran:
            try:
                yield lambda _: urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
            finally:
                ran.terminate()


def _arguments(deployment: Mapping[str, Any], rules: Path) -> Iterator[str]:
    """Yield the arguments of the chart's container, without its port and the path of its rules."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for argument in container["args"]:
        name, _, _ = argument.partition("=")
        if name == "--custom-resource-state-config-file":
            yield f"{name}={rules}"
        elif name != "--port":
            yield argument


@contextlib.contextmanager
def _account(client: DynamicClient, documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Create the chart's account with exactly its rights; yield a token of it."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAME}}
    made = [namespace, *(documents[kind] for kind in _RIGHTS)]
    try:
        for body in made:
            resource = client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
            resource.server_side_apply(body=body, field_manager=_NAME, force_conflicts=True)
        name = documents["ServiceAccount"]["metadata"]["name"]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
        path = f"/api/v1/namespaces/{_NAME}/serviceaccounts/{name}/token"
        yield str(client.request("post", path, body=request).status.token)
    finally:
        for body in reversed(made):
            resource = client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
            with contextlib.suppress(NotFoundError):
                resource.delete(name=body["metadata"]["name"], namespace=body["metadata"].get("namespace"))


def _as_account(kubeconfig: Path, token: str) -> Mapping[str, Any]:
    """Return an administrator's kubeconfig with the account's token."""
    found: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    return {**found, "users": [{"name": found["users"][0]["name"], "user": {"token": token}}]}
