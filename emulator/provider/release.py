"""The resource `helm.sh/v3:Release`: its operations, with the shape of the official provider's inputs and outputs.

Source of what is compared, kept and answered: pulumi-kubernetes, `provider/pkg/provider/helm_release.go`. The chart is
installed by Helm itself, from the archive in the local mirror; see `emulator.charts` for what is different here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.struct_pb2 import Struct

from emulator.charts import archive, left_out, releases, schema
from emulator.charts.helm import Helm, HelmError
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
from emulator.provider.lifecycle import INPUTS, Lifecycle, ReadResult
from emulator.provider.objects import Type, not_supported, parse_id, prune, without_nulls
from emulator.provider.progress import Progress
from emulator.provider.secrecy import annotate, needs_annotation

DEFAULT_TIMEOUT = 300
"""Seconds that Helm waits unless the inputs say otherwise."""

_BOOLEANS = ("atomic", "cleanupOnFail", "createNamespace", "skipAwait", "waitForJobs")
_SUPPORTED = (*_BOOLEANS, "chart", "compat", "name", "namespace", "repositoryOpts", "timeout", "values", "version")
_INSTALL_OPTIONS = {"atomic": "--atomic", "createNamespace": "--create-namespace"}
_UPGRADE_OPTIONS = {"atomic": "--atomic", "cleanupOnFail": "--cleanup-on-fail"}
_IDENTITY: tuple[PropertyPath, ...] = (("name",), ("namespace",))

Inputs = dict[str, Any]


class Releases:
    """The operations on releases of one configured provider resource. Safe for any number of threads."""

    def __init__(self, lifecycle: Lifecycle, orphans: Orphans) -> None:
        """Raises ProviderError on a cluster that is not the local one: stubs have no place elsewhere."""
        state = os.environ.get(MARKER)
        if not state:
            raise ProviderError(not_supported("a Helm release on a cluster that is not the local one"))
        paths = Paths.of(state=Path(state))
        self._binary = paths.bin / "helm"
        self._mirror = paths.mirror
        self._lifecycle = lifecycle
        self._client = lifecycle.client
        self._orphans = orphans
        self._left_out: dict[str, list[str]] = {}

    def skips_updates(self) -> bool:
        """See `Lifecycle.skips_updates`."""
        return self._lifecycle.skips_updates()

    def check(self, decoded: Decoded, kind: Type, naming: Naming, operation: Operation) -> Inputs:
        """Return the inputs with name, namespace, timeout and exact version; renders the chart once all is known.

        Raises ProviderError for inputs that are no inputs or cannot be followed here, for a chart that cannot be had,
        and for what the chart's schema or templates refuse. Values that the chart does not know are warnings.
        """
        inputs: Inputs = without_nulls({key: value for key, value in decoded.plain.items() if key != "values"})
        given = decoded.plain.get("values")
        if given is not None:
            inputs["values"] = given  # with its nulls, which take a chart's default away
        _require_supported(inputs)
        if not inputs.get("name"):
            inputs["name"] = naming.previous or generated_name(naming)
        inputs["namespace"] = inputs.get("namespace") or self._lifecycle.namespace
        if not inputs.get("skipAwait"):
            inputs.setdefault("timeout", DEFAULT_TIMEOUT)
        if any(inputs.get(key) is UNKNOWN for key in ("chart", "version", "repositoryOpts")):
            return inputs
        file = self._locate(inputs)
        files = archive.unpack(file)
        inputs["version"] = yaml.safe_load(files["Chart.yaml"])["version"]
        if isinstance(given, dict):
            for problem in schema.problems(given, schema.of_chart(files)):
                operation.warn(f"value {problem}")
        if not decoded.has_unknowns:
            self._left_out[_identifier(inputs)] = left_out.described(self._render(file, inputs, operation))
        return inputs

    def diff(
        self, kind: Type, olds: Struct, news: Struct, ignore: list[str], operation: Operation
    ) -> diffing.Difference:
        """Compare old and new inputs, and with them what a refresh found; another name or namespace replaces."""
        state = wire.decode(olds).plain
        old = state.get(INPUTS) or {}
        self._claim(state)
        return diffing.compare_maps(prune(state, old), wire.decode(news).plain, old, _IDENTITY, ignore)

    def create(
        self, kind: Type, properties: Struct, timeout: float, preview: bool, operation: Operation
    ) -> tuple[str, Struct]:
        """Install the chart. Returns ID and state. Raises PartialError for a release that exists but failed."""
        decoded = wire.decode(properties)
        if preview:
            return "", _state(decoded, None)
        self._lifecycle.require_cluster()
        identifier = _identifier(decoded.plain)
        existing = self._find(identifier, operation)
        if existing is not None:
            if not self._orphans.belongs(f"helm/{identifier}", operation.urn):
                raise ProviderError(
                    f"the release {identifier} exists already ({existing.chart} {existing.version}): uninstall it, "
                    "choose another name, or run pulumi import"
                )
            operation.inform(f"release {identifier} was begun by an interrupted run and is taken over from it")
        self._orphans.add(f"helm/{identifier}", operation.urn)
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
            return _state(decoded, None)
        self._lifecycle.require_cluster()
        return self._install(decoded, timeout, operation)

    def read(self, kind: Type, identifier: str, properties: Struct, inputs: Struct, operation: Operation) -> ReadResult:
        """Return the release as Helm knows it; the objects of the release are not looked at."""
        if self._lifecycle.gone_with_cluster(operation):
            return ReadResult("", None, None)
        if self._lifecycle.skips_updates():
            return ReadResult(identifier, properties, inputs)
        live = self._find(identifier, operation)
        if live is None:
            return ReadResult("", None, None)
        self._claim(wire.decode(properties).plain)
        if not inputs.fields:
            imported = {"name": live.name, "namespace": live.namespace, "chart": live.chart, "version": live.version}
            inputs = wire.encode({**imported, **({"values": dict(live.values)} if live.values else {})})
        return ReadResult(identifier, _state(wire.decode(inputs), live), inputs)

    def delete(self, kind: Type, identifier: str, properties: Struct, timeout: float, operation: Operation) -> None:
        """Uninstall the release; one that is gone is a success."""
        if self._lifecycle.gone_with_cluster(operation):
            return
        state = wire.decode(properties).plain
        self._claim(state)
        namespace, name = parse_id(identifier)
        options = ["--wait"] if state.get("atomic") or not state.get("skipAwait") else []
        try:
            self._helm(operation).uninstall(name, namespace, options, timeout=_seconds(state, timeout))
        except HelmError as error:
            operation.check()
            raise ProviderError(f"the release {identifier} was not uninstalled: {error}") from None

    def _install(self, decoded: Decoded, custom_timeout: float, operation: Operation) -> Struct:
        """Install the release, or upgrade it where there is one."""
        inputs = decoded.plain
        namespace, name, identifier = inputs["namespace"], inputs["name"], _identifier(inputs)
        file = self._locate(inputs)
        upgrade = self._settled(identifier, operation)
        options = [
            option for key, option in (_UPGRADE_OPTIONS if upgrade else _INSTALL_OPTIONS).items() if inputs.get(key)
        ]
        if not inputs.get("skipAwait"):
            options += ["--wait", *(["--wait-for-jobs"] if inputs.get("waitForJobs") else [])]
        operation.status(f"helm {'upgrade' if upgrade else 'install'} {name}: {file.stem}")
        with Progress(self._client, namespace, name, operation) as progress:
            try:
                self._helm(operation).install(
                    name,
                    namespace,
                    file,
                    inputs.get("values") or {},
                    options,
                    upgrade=upgrade,
                    timeout=_seconds(inputs, custom_timeout),
                )
            except HelmError as error:
                operation.check()
                self._fail("; ".join([str(error), *progress.missing]), decoded, upgrade, operation)
        operation.clear_status()
        live = self._find(identifier, operation)
        if live is None:
            raise ProviderError(f"the release {identifier} is gone again: somebody uninstalled it meanwhile")
        if live.stub_of:
            operation.inform(f"{live.chart} {live.version} is a stub: what it shows was read from {live.stub_of}")
        if self._left_out.get(identifier):
            names = ", ".join(self._left_out[identifier])
            operation.inform(
                f"left out here, as hooks do not run and webhooks would call controllers that are simulated: {names}"
            )
        return _state(decoded, live)

    def _fail(self, error: str, decoded: Decoded, upgrade: bool, operation: Operation) -> None:
        """Raise what the engine should make of a failed install: a release that is left behind stays in the state."""
        identifier = _identifier(decoded.plain)
        live = self._find(identifier, operation)
        if live is None or (upgrade and decoded.plain.get("atomic")):
            raise ProviderError(f"the release {identifier} was not installed: {error}") from None
        message = f"the release {identifier} is {live.status}: {error}"
        raise PartialError(message, identifier, _state(decoded, live), None, [message]) from None

    def _settled(self, identifier: str, operation: Operation) -> bool:
        """Tell whether there is a release to upgrade, once a revision that a killed Helm left unfinished is gone.

        Helm refuses to go on from such a revision; what it had made by then belongs to the release and is kept.
        """
        live = self._find(identifier, operation)
        if live is not None and live.status.startswith("pending"):
            operation.inform(f"revision {live.revision} of the release {identifier} was interrupted: it is made anew")
            secret = f"sh.helm.release.v1.{live.name}.v{live.revision}"
            self._client.request("DELETE", f"/api/v1/namespaces/{live.namespace}/secrets/{secret}", operation)
            live = self._find(identifier, operation)
        return live is not None

    def _locate(self, inputs: Inputs) -> Path:
        """Return the archive of the chart that the inputs name. Raises ProviderError where there is none."""
        chart, version = str(inputs["chart"]), str(inputs.get("version") or "")
        addressed = chart.startswith(("oci://", "https://"))
        if chart.endswith(".tgz") and not addressed:
            file = Path(chart)
            if not file.is_absolute():
                raise ProviderError(
                    f"chart is {chart!r}: a provider in another folder cannot tell what it is relative to"
                )
        elif not addressed and not (inputs.get("repositoryOpts") or {}).get("repo"):
            raise ProviderError(
                f"chart is {chart!r}, without repositoryOpts.repo: give the repository's address, or the path of an "
                "archive <name>-<version>.tgz"
            )
        else:
            chart = chart.rstrip("/").rpartition("/")[2]
            if not version:
                raise ProviderError(f"version is not set: the chart {chart} has to be pinned to one")
            file = self._mirror / f"{chart}-{version}.tgz"
        if file.exists():
            return file
        known = ", ".join(sorted(found.stem for found in self._mirror.glob("*.tgz"))) or "none"
        raise ProviderError(
            f"the chart {chart} {version} cannot be had on this machine: it is neither packed from upstream's source "
            f"nor is there a stub. There are: {known}. Choose one of these versions, or add a stub of the wanted one "
            "(see emulator/charts/__init__.py) and run `make mirror`"
        )

    def _render(self, file: Path, inputs: Inputs, operation: Operation) -> str:
        try:
            return self._helm(operation).template(
                inputs["name"], inputs["namespace"], file, inputs.get("values") or {}, self._lifecycle.version
            )
        except HelmError as error:
            operation.check()
            raise ProviderError(f"the chart {file.stem} refuses its values: {error}") from None

    def _helm(self, operation: Operation) -> Helm:
        return Helm(self._binary, self._client.kubeconfig(), operation.closing)

    def _find(self, identifier: str, operation: Operation) -> releases.Release | None:
        namespace, name = parse_id(identifier)
        query = {"labelSelector": f"{releases.SELECTOR},name={name}"}
        found = self._client.request("GET", f"/api/v1/namespaces/{namespace}/secrets", operation, query)
        secret = releases.newest(found.get("items") or []).get((namespace, name))
        release = releases.Release.of(secret) if secret is not None else None
        return release if release is not None and release.status != "uninstalled" else None

    def _claim(self, state: Mapping[str, Any]) -> None:
        if state.get("name") and state.get("namespace"):
            self._orphans.claim(f"helm/{_identifier(state)}")


def _require_supported(inputs: Inputs) -> None:
    for key, value in inputs.items():
        if key not in _SUPPORTED:
            raise ProviderError(
                f"{key} is no input of a release, or {key} is not supported for a release on the local cluster; "
                f"allowed are {', '.join(sorted(_SUPPORTED))}"
            )
        if key in _BOOLEANS and not isinstance(value, bool) and value is not UNKNOWN:
            raise ProviderError(f"{key} is {value!r}; true or false is allowed")
    if not inputs.get("chart"):
        raise ProviderError("chart is required: the chart's name, or the path of its archive")


def _identifier(inputs: Mapping[str, Any]) -> str:
    return f"{inputs['namespace']}/{inputs['name']}"


def _seconds(inputs: Mapping[str, Any], custom: float) -> int:
    return int(custom or inputs.get("timeout") or DEFAULT_TIMEOUT)


def _state(decoded: Decoded, live: releases.Release | None) -> Struct:
    """Encode the state: the inputs, the live values and version over them, and what Helm knows of the release.

    live: None in a preview.
    """
    outputs: dict[str, Any] = {**decoded.plain, "resourceNames": UNKNOWN, "status": UNKNOWN}
    if live is not None:
        outputs |= {"version": live.version, "resourceNames": releases.resource_names(live.objects())}
        outputs |= {"values": dict(live.values)} if live.values else {}
        outputs["status"] = {
            "appVersion": live.app_version,
            "chart": live.chart,
            "name": live.name,
            "namespace": live.namespace,
            "revision": live.revision,
            "status": live.status,
            "version": live.version,
        }
    return wire.encode({**_marked(outputs, decoded), INPUTS: Secret(_marked(decoded.plain, decoded))})


def _marked(outputs: dict[str, Any], decoded: Decoded) -> dict[str, Any]:
    return annotate(outputs, decoded.marked) if needs_annotation(outputs, decoded.has_secrets) else outputs
