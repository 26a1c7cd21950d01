"""Microsoft.Resources and Microsoft.Features: resource groups, and templates that register preview features."""

import difflib
from collections.abc import Iterator, Mapping
from typing import ClassVar

from emulator.azure.errors import refused
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import Kind, Request
from emulator.azure.store import Properties, Record, State

REGISTRATION = "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations"


class ResourceGroup(Kind):
    """A resource group. Its deletion deletes its resources."""

    token = "azure-native:resources:ResourceGroup"

    def check_delete(self, request: Request) -> None:
        if request.before is not None and request.before.properties.get("managedBy"):
            raise refused(
                "ResourceGroupManaged", group=request.before.name, owner=request.before.properties["managedBy"]
            )


class FeatureRegistration(Kind):
    """The registration of a preview feature: first Registering, later Registered.

    The official provider creates none (see `emulator.azure.lifecycle`), so only templates create them.
    """

    token = "azure-native:features:SubscriptionFeatureRegistration"

    def check(self, request: Request) -> None:
        namespace, name = request.names["providerNamespace"], request.names["featureName"]
        if not request.facts.has_feature(namespace, name):
            nearest = difflib.get_close_matches(name, request.facts.features.get(namespace, ()), n=1)
            raise refused(
                "FeatureNotFound",
                name=name,
                namespace=namespace,
                nearest=f"Did you mean '{nearest[0]}'?" if nearest else "",
            )

    def complete(self, request: Request) -> Properties:
        prepared = self._first(request.facts, request.names) == "Registered"
        return self._answer(request.facts, request.names, "Registered" if prepared else "Registering")

    def absent(self, facts: AzureFacts, names: Mapping[str, str]) -> Properties | None:
        # A GET returns every feature, registered or not (https://github.com/pulumi/pulumi-azure-native/issues/1722).
        known = facts.has_feature(names["providerNamespace"], names["featureName"])
        return self._answer(facts, names, self._first(facts, names)) if known else None

    def on_finished(self, state: State, record: Record) -> None:
        record.properties["properties"]["state"] = "Registered"

    def on_failed(self, state: State, record: Record) -> None:
        record.properties["properties"]["state"] = "NotRegistered"

    def _first(self, facts: AzureFacts, names: Mapping[str, str]) -> str:
        """Return the state of a feature before any registration here."""
        return "Registered" if facts.is_prepared(names["providerNamespace"], names["featureName"]) else "NotRegistered"

    def _answer(self, facts: AzureFacts, names: Mapping[str, str], state: str) -> Properties:
        properties = {
            "featureName": names["featureName"],
            "providerNamespace": names["providerNamespace"],
            "state": state,
            "subscriptionId": facts.subscription_id,
            "tenantId": facts.tenant_id,
        }
        return {"name": names["featureName"], "properties": properties, "type": self.type}


class Template:
    """A template that is deployed, as a part of a Kind. Only one type of resources is emulated in it.

    contents: that type. Its resources have names of two parts.
    form: these names in words.
    """

    contents: ClassVar[Kind]
    form: ClassVar[str]

    def check(self, request: Request) -> None:
        for inner in self.inner(request):
            self.contents.check(inner)

    def computed(self, request: Request) -> Properties:
        found = [{"id": inner.id} for inner in self.inner(request)]
        mode = request.body["properties"]["mode"]
        return {"properties": {"mode": mode, "outputResources": found, "provisioningState": "Succeeded"}}

    def inner(self, request: Request) -> Iterator[Request]:
        """Yield the requests for the resources of the template. Raises ArmError for other contents."""
        facts, state, emulated = request.facts, request.state, self.contents.type
        for each in request.body["properties"]["template"]["resources"]:
            kind, name = str(each.get("type")), str(each.get("name"))
            if kind.lower() != emulated.lower() or name.count("/") != 1:
                raise refused("InvalidTemplate", type=kind, name=name, emulated=emulated, form=self.form)
            given = dict(zip(self.contents.parameters[-2:], name.split("/"), strict=True))
            names = {key: given.get(key) or request.names[key] for key in self.contents.parameters}
            inner_id = self.contents.id(facts, names)
            yield Request(facts, state, inner_id, names, dict(each["properties"]), state.get(inner_id))


FEATURE = FeatureRegistration()


class Deployment(Template, Kind):
    """A template deployed to the subscription."""

    token = "azure-native:resources:DeploymentAtSubscriptionScope"
    contents = FEATURE
    form = "<provider namespace>/<feature>"

    def on_started(self, request: Request, record: Record) -> None:
        for inner in self.inner(request):
            if inner.before is None or inner.before.properties["properties"]["state"] == "NotRegistered":
                request.state.put(Record(inner.id, FEATURE.token, FEATURE.type, FEATURE.complete(inner)))


def in_effect(facts: AzureFacts, state: State, namespace: str, name: str) -> bool:
    """Tell whether a preview feature is registered and its provider uses it."""
    names = {"providerNamespace": namespace, "featureName": name}
    found = state.get(FEATURE.id(facts, names))
    return facts.is_prepared(namespace, name) or (found is not None and bool(found.hidden.get("propagated")))


def propagate(state: State, namespace: str) -> list[str]:
    """Make a provider use its registered features, as `az provider register` does; return their names.

    Source: learn.microsoft.com/azure/aks/use-hpc-infiniband, which requires it after the registration of the feature.
    """
    found = []
    for record in state.of_type(REGISTRATION):
        known = record.properties["properties"]
        if known["providerNamespace"].lower() == namespace.lower() and known["state"] == "Registered":
            record.hidden["propagated"] = True
            found.append(str(known["featureName"]))
    return found
