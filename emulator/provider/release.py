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

from emulator.charts import archive, left_out, releases, schema
from emulator.charts.helm import Helm, HelmError
from emulator.cluster.layout import MARKER
from emulator.paths import Paths
from emulator.plugin.diffing import Difference
from emulator.plugin.errors import PartialError, ProviderError
from emulator.plugin.operation import Operation
from emulator.plugin.paths import Path as PropertyPath
from emulator.plugin.provider import Checked, Found, Naming
from emulator.plugin.wire import UNKNOWN, Properties, Secret, Values
from emulator.provider import diffing
from emulator.provider.check import generated_name
from emulator.provider.cluster import Cluster
from emulator.provider.objects import not_supported, parse_id, prune, without_nulls
from emulator.provider.progress import Progress
from emulator.provider.secrecy import secret_as
from emulator.provider.state import INPUTS

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

    def __init__(self, cluster: Cluster) -> None:
        """Take up the local cluster; raises ProviderError on another one, where stubs have no place."""
        state = os.environ.get(MARKER)
        if not state:
            raise ProviderError(not_supported("a Helm release on a cluster that is not the local one"))
        paths = Paths.of(state=Path(state))
        self._binary = paths.bin / "helm"
        self._mirror = paths.mirror
        self._cluster = cluster
        self._client = cluster.client
        self._left_out: dict[str, list[str]] = {}

    def check(self, olds: Properties, news: Properties, naming: Naming, operation: Operation) -> Checked:
        """Return the inputs with name, namespace, timeout and exact version; renders the chart once all is known.

        Raises ProviderError for inputs that are no inputs or cannot be followed here, for a chart that cannot be had,
        and for what the chart's schema or templates refuse. Values that the chart does not know are warnings.
        """
        inputs: Inputs = without_nulls({key: value for key, value in news.plain.items() if key != "values"})
        given = news.plain.get("values")
        if given is not None:
            inputs["values"] = given  # with its nulls, which take a chart's default away
        _require_supported(inputs)
        if not inputs.get("name"):
            inputs["name"] = olds.text("name") or generated_name(naming)
        inputs["namespace"] = inputs.get("namespace") or self._cluster.namespace
        if not inputs.get("skipAwait"):
            inputs.setdefault("timeout", DEFAULT_TIMEOUT)
        if any(inputs.get(key) is UNKNOWN for key in ("chart", "version", "repositoryOpts")):
            return Checked(secret_as(news, inputs))
        file = self._locate(inputs)
        files = archive.unpack(file)
        inputs["version"] = yaml.safe_load(files["Chart.yaml"])["version"]
        if isinstance(given, dict):
            for problem in schema.problems(given, schema.of_chart(files)):
                operation.warn(f"value {problem}")
        if not news.has_unknowns:
            self._left_out[_identifier(inputs)] = left_out.described(self._render(file, inputs, operation))
        return Checked(secret_as(news, inputs))

    def diff(
        self, identifier: str, state: Properties, inputs: Properties, news: Properties, operation: Operation
    ) -> Difference:
        """Compare old and new inputs, and with them what a refresh found; another name or namespace replaces."""
        old = state.part(INPUTS).plain
        return diffing.compare_maps(prune(state.plain, old), news.plain, _IDENTITY, operation.ignore)

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Values]:
        """Install the chart. Returns ID and state. Raises PartialError for a release that exists but failed."""
        if operation.preview:
            return "", _state(inputs, None)
        self._cluster.require()
        identifier = _identifier(inputs.plain)
        existing = self._find(identifier, operation)
        if existing is not None:
            raise ProviderError(
                f"the release {identifier} exists already ({existing.status}, {existing.chart} {existing.version}): "
                f"`helm uninstall {inputs.plain['name']} --namespace {inputs.plain['namespace']}`, choose another "
                "name, or run pulumi import"
            )
        return identifier, self._install(inputs, operation, upgrade=False)

    def update(self, identifier: str, state: Properties, news: Properties, operation: Operation) -> Values:
        """Upgrade the release."""
        if operation.preview:
            return _state(news, None)
        self._cluster.require()
        return self._install(news, operation, upgrade=True)

    def read(self, identifier: str, state: Properties, inputs: Properties, operation: Operation) -> Found | None:
        """Return the release as Helm knows it; the objects of the release are not looked at."""
        if self._cluster.leaves_state(operation):
            return None
        self._cluster.require(deleting=True)
        live = self._find(identifier, operation)
        if live is None:
            return None
        identifier = f"{live.namespace}/{live.name}"
        if not inputs:
            imported = {"name": live.name, "namespace": live.namespace, "chart": live.chart, "version": live.version}
            inputs = Properties.of({**imported, **({"values": dict(live.values)} if live.values else {})})
        return Found(identifier, _state(inputs, live), inputs)

    def delete(self, identifier: str, state: Properties, operation: Operation) -> None:
        """Uninstall the release; one that is gone is a success."""
        if self._cluster.leaves_state(operation):
            return
        self._cluster.require(deleting=True)
        inputs = state.plain
        namespace, name = parse_id(identifier)
        seconds = _seconds(inputs, operation)
        command = ["uninstall", name, f"--namespace={namespace}", f"--timeout={seconds}s", "--no-hooks"]
        # Definitions of custom resources stay.
        command += ["--ignore-not-found", *(["--wait"] if inputs.get("atomic") or not inputs.get("skipAwait") else [])]
        try:
            self._helm(operation).run(command, timeout=seconds)
        except HelmError as error:
            operation.check()
            raise ProviderError(f"the release {identifier} was not uninstalled: {error}") from None

    def _install(self, given: Properties, operation: Operation, *, upgrade: bool) -> Values:
        """Install the release, or upgrade it."""
        inputs = given.plain
        namespace, name, identifier = inputs["namespace"], inputs["name"], _identifier(inputs)
        file = self._locate(inputs)
        seconds = _seconds(inputs, operation)
        command = ["upgrade", "--reset-values"] if upgrade else ["install"]
        command += [name, str(file), f"--namespace={namespace}", f"--timeout={seconds}s", "--no-hooks", "--hide-notes"]
        command += ["--burst-limit=400", "--qps=200", *left_out.POST_RENDERER]
        possible = _UPGRADE_OPTIONS if upgrade else _INSTALL_OPTIONS
        command += [option for key, option in possible.items() if inputs.get(key)]
        if not inputs.get("skipAwait"):
            command += ["--wait", *(["--wait-for-jobs"] if inputs.get("waitForJobs") else [])]
        operation.status(f"helm {command[0]} {name}: {file.stem}")
        with Progress(self._client, namespace, name, operation) as progress:
            try:
                self._helm(operation).run(command, inputs.get("values"), seconds)
            except HelmError as error:
                self._fail("; ".join([str(error), *progress.missing]), given, upgrade, operation)
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
        return _state(given, live)

    def _fail(self, error: str, given: Properties, upgrade: bool, operation: Operation) -> None:
        """Raise what the engine should make of a failed install: a release that is left behind stays in the state."""
        identifier = _identifier(given.plain)
        # A cancelled operation asks nothing more, and the release is there all the same.
        live = self._find(identifier, Operation(operation.urn, operation.reporter))
        if live is None or (upgrade and given.plain.get("atomic")):
            raise ProviderError(f"the release {identifier} was not installed: {error}") from None
        message = f"the release {identifier} is {live.status}: {error}"
        raise PartialError(message, identifier, _state(given, live), None, [message]) from None

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
        where = (f"--namespace={inputs['namespace']}", f"--kube-version={self._cluster.version}")
        try:
            return self._helm(operation).run(["template", inputs["name"], str(file), *where], inputs.get("values"))
        except HelmError as error:
            operation.check()
            raise ProviderError(f"the chart {file.stem} refuses its values: {error}") from None

    def _helm(self, operation: Operation) -> Helm:
        return Helm(self._binary, self._client.kubeconfig(), operation.closing)

    def _find(self, identifier: str, operation: Operation) -> releases.Release | None:
        namespace, name = parse_id(identifier)
        query = {"labelSelector": f"{releases.SELECTOR},name={name}"}
        path = f"/api/v1/namespaces/{namespace or self._cluster.namespace}/secrets"
        found = releases.newest(self._client.request("GET", path, operation, query).get("items") or [])
        return next((release for release in found if release.status != "uninstalled"), None)


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


def _seconds(inputs: Mapping[str, Any], operation: Operation) -> int:
    return int(operation.timeout or inputs.get("timeout") or DEFAULT_TIMEOUT)


def _state(inputs: Properties, live: releases.Release | None) -> dict[str, Any]:
    """Return the state: the inputs, the live values and version over them, and what Helm knows of the release.

    live: None in a preview.
    """
    outputs: dict[str, Any] = {**inputs.plain, "resourceNames": UNKNOWN, "status": UNKNOWN}
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
    return {**secret_as(inputs, outputs), INPUTS: Secret(inputs)}
