"""The resource `helm.sh/v3:Release`: its operations, with the shape of the official provider's inputs and outputs.

Source of what is compared, kept and answered: pulumi-kubernetes, `provider/pkg/provider/helm_release.go`. The chart is
installed by Helm itself, from the archive in the local mirror; see `emulator.charts` for what is different here.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.struct_pb2 import Struct

from emulator.charts import archive, left_out, releases, values
from emulator.charts.helm import Helm, HelmError
from emulator.charts.record import ANNOTATION
from emulator.cluster.layout import MARKER
from emulator.paths import Paths
from emulator.plugin import wire
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.orphans import Orphans
from emulator.plugin.paths import Path as PropertyPath
from emulator.plugin.wire import UNKNOWN, Decoded, Secret
from emulator.provider import diffing
from emulator.provider.check import Naming, generated_name
from emulator.provider.errors import ApiError
from emulator.provider.lifecycle import Lifecycle, ReadResult
from emulator.provider.objects import RELEASE, Type, not_supported, parse_id, prune, without_nulls
from emulator.provider.progress import Progress
from emulator.provider.secrecy import annotate, needs_annotation

INPUTS = "__inputs"
DEFAULT_TIMEOUT = 300

# The inputs of the resource in the schema of pulumi-kubernetes 4.34.2; those of the second group must be unset here.
_BOOLEANS = (
    "allowNullValues",
    "atomic",
    "cleanupOnFail",
    "createNamespace",
    "disableCRDHooks",
    "disableOpenapiValidation",
    "disableWebhooks",
    "forceUpdate",
    "renderSubchartNotes",
    "skipAwait",
    "skipCrds",
    "waitForJobs",
)
_TEXTS = ("chart", "compat", "description", "name", "namespace", "version")
_PLAYED = (*_BOOLEANS, *_TEXTS, "maxHistory", "repositoryOpts", "timeout", "values")
_REFUSED = (
    "dependencyUpdate",
    "devel",
    "keyring",
    "lint",
    "manifest",
    "postrender",
    "recreatePods",
    "replace",
    "resetValues",
    "resourceNames",
    "reuseValues",
    "valueYamlFiles",
    "verify",
)
# Inputs that become an argument of Helm when they are true.
_INSTALL_OPTIONS = {
    "atomic": "--atomic",
    "createNamespace": "--create-namespace",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "skipCrds": "--skip-crds",
}
_UPGRADE_OPTIONS = {
    "atomic": "--atomic",
    "cleanupOnFail": "--cleanup-on-fail",
    "forceUpdate": "--force",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "skipCrds": "--skip-crds",
}
_IDENTITY: tuple[PropertyPath, ...] = (("name",), ("namespace",))

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Charts:
    """What charts are installed with: Helm's command and the folder with the archives."""

    helm: Path
    mirror: Path

    @classmethod
    def local(cls) -> Charts:
        """Return those of the local cluster that this process belongs to.

        Raises ProviderError when it belongs to none: what is recorded, played and left out has no place elsewhere.
        """
        state = os.environ.get(MARKER)
        if not state:
            raise ProviderError(not_supported("a Helm release on a cluster that is not the local one"))
        paths = Paths.of(state=Path(state))
        return cls(paths.bin / "helm", paths.mirror)

    def locate(self, inputs: Mapping[str, Any]) -> Path:
        """Return the archive of the chart that the inputs name. Raises ProviderError where there is none."""
        chart, version = str(inputs.get("chart") or ""), str(inputs.get("version") or "")
        if chart.endswith(".tgz") and not chart.startswith(("oci://", "https://")):
            file = Path(chart)
            if not file.is_absolute():
                raise ProviderError(
                    f"chart is {chart!r}: a stand-in in another folder cannot tell what it is relative to"
                )
            return self._present(file, chart, version)
        repository = (inputs.get("repositoryOpts") or {}).get("repo")
        if not repository and not chart.startswith(("oci://", "https://")):
            raise ProviderError(
                f"chart is {chart!r}, without repositoryOpts.repo: give the repository's address, or the path of an "
                "archive <name>-<version>.tgz"
            )
        name = chart.rstrip("/").rpartition("/")[2]
        if not version:
            raise ProviderError(f"version is not set: the chart {name} has to be pinned to one")
        return self._present(self.mirror / f"{name}-{version}.tgz", name, version)

    def _present(self, file: Path, chart: str, version: str) -> Path:
        if file.exists():
            return file
        known = ", ".join(sorted(found.stem for found in self.mirror.glob("*.tgz"))) or "none"
        raise ProviderError(
            f"the chart {chart} {version} cannot be had on this machine: it is neither packed from upstream's source "
            f"nor recorded. There are: {known}. Choose one of these versions, or record the wanted one in "
            "emulator/charts/recorded (see emulator/charts/record.py) and run `make mirror`"
        )


class Releases:
    """The operations on releases of one configured provider resource. Safe for any number of threads."""

    def __init__(self, lifecycle: Lifecycle, charts: Charts, orphans: Orphans) -> None:
        self._lifecycle = lifecycle
        self._client = lifecycle.client
        self._charts = charts
        self._namespace = lifecycle.namespace
        self._orphans = orphans
        self._rendered: dict[str, str] = {}
        self._lock = threading.Lock()

    def skips_updates(self) -> bool:
        """See `Lifecycle.skips_updates`."""
        return self._lifecycle.skips_updates()

    def check(self, decoded: Decoded, kind: Type, naming: Naming, operation: Operation) -> Inputs:
        """Return the inputs with name, namespace, timeout and exact version; renders the chart once all is known.

        Raises ProviderError for inputs that are no inputs or cannot be followed here, for a chart that cannot be had,
        and for what the chart's schema or templates refuse. Values that the chart does not know are warnings.
        """
        # Nulls in values take a chart's default away, so they stay.
        inputs: Inputs = {**without_nulls({**decoded.plain, "values": None})}
        if decoded.plain.get("values") is not None:
            inputs["values"] = decoded.plain["values"]
        _require_playable(inputs)
        if not inputs.get("name"):
            inputs["name"] = naming.previous or generated_name(naming)
        inputs["namespace"] = inputs.get("namespace") or self._namespace
        if not inputs.get("skipAwait"):
            inputs.setdefault("timeout", DEFAULT_TIMEOUT)
        if any(inputs.get(key) is UNKNOWN for key in ("chart", "version", "repositoryOpts")):
            return inputs
        file = self._charts.locate(inputs)
        files = archive.unpack(file)
        inputs["version"] = _chart(files)["version"]
        given = inputs.get("values") or {}
        if isinstance(given, dict):
            for problem in values.problems(given, values.shape(files)):
                operation.warn(f"value {problem}")
        if not decoded.has_unknowns:
            self._render(file, inputs)
        return inputs

    def diff(
        self, kind: Type, olds: Struct, news: Struct, ignore: list[str], operation: Operation
    ) -> diffing.Difference:
        """Compare old and new inputs, and with them what a refresh found; another name or namespace replaces."""
        state = wire.decode(olds).plain
        old = state.get(INPUTS) or {}
        self._claim(state)
        new = wire.decode(news).plain
        return diffing.compare_maps(prune(state, old), new, old, _IDENTITY, ignore)

    def create(
        self, kind: Type, properties: Struct, timeout: float, preview: bool, operation: Operation
    ) -> tuple[str, Struct]:
        """Install the chart. Returns ID and state. Raises PartialError for a release that exists but failed."""
        decoded = wire.decode(properties)
        inputs = decoded.plain
        if preview:
            return "", _preview_state(decoded)
        self._lifecycle.require_cluster()
        identifier = f"{inputs['namespace']}/{inputs['name']}"
        existing = self._find(inputs["namespace"], inputs["name"], operation)
        if existing is not None:
            if not self._orphans.belongs(_uid(inputs), operation.urn):
                raise ProviderError(
                    f"the release {identifier} exists already ({existing.chart} {existing.version}): uninstall it, "
                    "choose another name, or run pulumi import"
                )
            operation.inform(f"release {identifier} was begun by an interrupted run and is taken over from it")
        self._orphans.add(_uid(inputs), operation.urn)
        return identifier, self._install(decoded, timeout, operation)

    def update(
        self,
        kind: Type,
        identifier: str,
        olds: Struct,
        news: Struct,
        timeout: float,
        ignore: list[str],
        preview: bool,
        operation: Operation,
    ) -> Struct:
        """Upgrade the release."""
        decoded = wire.decode(news)
        if preview:
            return _preview_state(decoded)
        self._lifecycle.require_cluster()
        return self._install(decoded, timeout, operation)

    def read(self, kind: Type, identifier: str, properties: Struct, inputs: Struct, operation: Operation) -> ReadResult:
        """Return the release as Helm knows it; the objects of the release are not looked at."""
        if self._lifecycle.gone_with_cluster(operation):
            return ReadResult("", None, None)
        if self._lifecycle.skips_updates():
            return ReadResult(identifier, properties, inputs)
        namespace, name = parse_id(identifier)
        live = self._find(namespace or self._namespace, name, operation)
        if live is None:
            return ReadResult("", None, None)
        state = wire.decode(properties)
        self._claim(state.plain)
        recorded = state.plain.get(INPUTS)
        if recorded is None:
            recorded = {"name": name, "namespace": live.namespace, "chart": live.chart, "version": live.version}
            recorded |= {"values": dict(live.values)} if live.values else {}
        message = wire.encode(recorded)
        if state.has_secrets and inputs.fields:
            message = inputs
        marked = wire.decode(message)
        return ReadResult(f"{live.namespace}/{live.name}", _state(marked, live), message)

    def delete(self, kind: Type, identifier: str, properties: Struct, timeout: float, operation: Operation) -> None:
        """Uninstall the release; one that is gone is a success."""
        if self._lifecycle.gone_with_cluster(operation):
            return
        state = wire.decode(properties).plain
        self._claim(state)
        namespace, name = parse_id(identifier)
        wait = bool(state.get("atomic")) or not state.get("skipAwait")
        try:
            self._helm().uninstall(
                name,
                namespace or self._namespace,
                timeout=_seconds(state, timeout),
                wait=wait,
                closing=operation.closing,
            )
        except HelmError as error:
            operation.check()
            raise ProviderError(f"the release {identifier} was not uninstalled: {error}") from None

    def _install(self, decoded: Decoded, custom_timeout: float, operation: Operation) -> Struct:
        """Install the release, or upgrade it where there is one."""
        inputs = decoded.plain
        namespace, name = inputs["namespace"], inputs["name"]
        file = self._charts.locate(inputs)
        chart = _chart(archive.unpack(file))
        self._announce(file, chart, inputs, operation)
        upgrade = self._settled(namespace, name, operation)
        wait = not inputs.get("skipAwait")
        possible = _UPGRADE_OPTIONS if upgrade else _INSTALL_OPTIONS
        options = [option for key, option in possible.items() if inputs.get(key)]
        options += ["--wait"] if wait else []
        options += ["--wait-for-jobs"] if wait and inputs.get("waitForJobs") else []
        options += [f"--description={inputs['description']}"] if inputs.get("description") else []
        options += [f"--history-max={inputs['maxHistory']}"] if upgrade and inputs.get("maxHistory") else []
        operation.status(f"helm {'upgrade' if upgrade else 'install'} {name}: {chart['name']} {chart['version']}")
        with Progress(self._client, namespace, name, operation) as progress:
            try:
                self._helm().install(
                    name,
                    namespace,
                    file,
                    inputs.get("values") or {},
                    upgrade=upgrade,
                    timeout=_seconds(inputs, custom_timeout),
                    options=options,
                    closing=operation.closing,
                )
            except HelmError as error:
                operation.check()
                self._fail("; ".join([str(error), *progress.missing]), decoded, upgrade, operation)
        operation.clear_status()
        live = self._find(namespace, name, operation)
        if live is None:
            raise ProviderError(f"the release {namespace}/{name} is gone again: somebody uninstalled it meanwhile")
        return _state(decoded, live)

    def _fail(self, error: str, decoded: Decoded, upgrade: bool, operation: Operation) -> None:
        """Raise what the engine should make of a failed install: a release that is left behind is recorded."""
        inputs = decoded.plain
        identifier = f"{inputs['namespace']}/{inputs['name']}"
        live = self._find(inputs["namespace"], inputs["name"], Operation("", operation.reporter))
        if live is None or (upgrade and inputs.get("atomic")):
            raise ProviderError(f"the release {identifier} was not installed: {error}") from None
        message = f"the release {identifier} is {live.status}: {error}"
        raise PartialError(message, identifier, _state(decoded, live), None, [message]) from None

    def _announce(self, file: Path, chart: Mapping[str, Any], inputs: Inputs, operation: Operation) -> None:
        source = (chart.get("annotations") or {}).get(ANNOTATION)
        missing = left_out.described(self._render(file, inputs))
        parts = []
        if source:
            parts.append(
                f"{chart['name']} {chart['version']} is recorded, not rendered: what it shows was read from {source}"
            )
        if missing:
            parts.append(
                "left out here, as hooks do not run and webhooks would call controllers that are only played: "
                + ", ".join(missing)
            )
        if parts:
            operation.inform("; ".join(parts))

    def _render(self, file: Path, inputs: Inputs) -> str:
        """Return what the chart renders to; kept, as a run asks for the same more than once."""
        given = inputs.get("values") or {}
        content = json.dumps([inputs["name"], inputs["namespace"], given], sort_keys=True)
        key = f"{file} {file.stat().st_mtime_ns} {hashlib.sha256(content.encode()).hexdigest()}"
        with self._lock:
            if key in self._rendered:
                return self._rendered[key]
        try:
            found = self._helm().template(inputs["name"], inputs["namespace"], file, given, self._lifecycle.version)
        except HelmError as error:
            raise ProviderError(f"the chart {file.stem} refuses its values: {error}") from None
        with self._lock:
            self._rendered[key] = found
        return found

    def _settled(self, namespace: str, name: str, operation: Operation) -> bool:
        """Tell whether there is a release to upgrade, once a revision that a killed Helm left unfinished is gone.

        Helm refuses to go on from such a revision; what it had made by then belongs to the release and is kept.
        """
        live = self._find(namespace, name, operation)
        if live is not None and live.status.startswith("pending"):
            operation.inform(
                f"revision {live.revision} of the release {namespace}/{name} was interrupted: it is made anew"
            )
            secret = f"sh.helm.release.v1.{name}.v{live.revision}"
            self._client.request("DELETE", f"/api/v1/namespaces/{namespace}/secrets/{secret}", operation)
            live = self._find(namespace, name, operation)
        return live is not None

    def _helm(self) -> Helm:
        return Helm(self._charts.helm, self._client.kubeconfig())

    def _find(self, namespace: str, name: str, operation: Operation) -> releases.Release | None:
        query = {"labelSelector": f"{releases.SELECTOR},name={name}"}
        try:
            found = self._client.request("GET", f"/api/v1/namespaces/{namespace}/secrets", operation, query)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        secret = releases.newest(found.get("items") or []).get((namespace, name))
        if secret is None:
            return None
        release = releases.Release.of(secret)
        return None if release.status == "uninstalled" else release

    def _claim(self, state: Mapping[str, Any]) -> None:
        if state.get("name") and state.get("namespace"):
            self._orphans.claim(_uid(state))


def _require_playable(inputs: Inputs) -> None:
    for key, value in inputs.items():
        if key in _REFUSED and value not in (None, False, "", [], {}):
            raise ProviderError(f"{key} is not supported for a release on the local cluster: leave it out")
        if key not in _PLAYED and key not in _REFUSED:
            raise ProviderError(f"{key} is no input of {RELEASE}; allowed are {', '.join(sorted(_PLAYED))}")
        if key in _BOOLEANS and not isinstance(value, bool) and value is not UNKNOWN:
            raise ProviderError(f"{key} is {value!r}; true or false is allowed")
    if not inputs.get("chart"):
        raise ProviderError("chart is required: the chart's name, or the path of its archive")


def _chart(files: Mapping[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files["Chart.yaml"])
    return found


def _seconds(inputs: Mapping[str, Any], custom: float) -> int:
    return int(custom or inputs.get("timeout") or DEFAULT_TIMEOUT)


def _uid(inputs: Mapping[str, Any]) -> str:
    return f"helm/{inputs['namespace']}/{inputs['name']}"


def _preview_state(decoded: Decoded) -> Struct:
    outputs = {**_marked(decoded.plain, decoded), "resourceNames": UNKNOWN, "status": UNKNOWN}
    return wire.encode({**outputs, INPUTS: Secret(_marked(decoded.plain, decoded))})


def _state(decoded: Decoded, live: releases.Release) -> Struct:
    """Encode the state: the inputs, the live values and version over them, and what Helm knows of the release."""
    outputs: dict[str, Any] = {
        **decoded.plain,
        "version": live.version,
        "resourceNames": releases.resource_names(live.objects()),
        "status": {
            "appVersion": live.app_version,
            "chart": live.chart,
            "name": live.name,
            "namespace": live.namespace,
            "revision": live.revision,
            "status": live.status,
            "version": live.version,
        },
    }
    if live.values:
        outputs["values"] = dict(live.values)
    return wire.encode({**_marked(outputs, decoded), INPUTS: Secret(_marked(decoded.plain, decoded))})


def _marked(outputs: dict[str, Any], decoded: Decoded) -> dict[str, Any]:
    return annotate(outputs, decoded.marked) if needs_annotation(outputs, decoded.has_secrets) else outputs
