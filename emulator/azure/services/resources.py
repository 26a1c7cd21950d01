"""Microsoft.Resources and Microsoft.Features: resource groups, registrations of preview features."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from emulator.azure.errors import ArmError
from emulator.azure.facts import AzureFacts
from emulator.azure.services.base import GROUP, Kind, NameRule, Request, now, stable_uuid
from emulator.azure.store import Properties, Record, State

REGISTRATION = "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations"


class ResourceGroup(Kind):
    """A resource group; its deletion deletes what is in it."""

    token = "azure-native:resources:ResourceGroup"
    type = GROUP
    path = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
    rule = NameRule(
        r"[\w().-]{0,89}[\w()-]",
        "1-90 letters, digits, underscores, parentheses, hyphens and periods, no period at the end",
    )
    replaces = frozenset({"location"})

    def check(self, request: Request) -> None:
        location = request.body.get("location")
        if location is None and request.creates:
            raise ArmError("LocationRequired", "The location property is required for this definition.")
        if location is not None and request.facts.region(location) is None:
            raise ArmError(
                "LocationNotAvailableForResourceGroup",
                f"The provided location '{location}' is not available for resource group. "
                f"List of available regions is '{','.join(request.facts.regions)}'.",
            )
        if request.before is not None and location is not None:
            before = request.before.properties["location"]
            if request.facts.region(before) != request.facts.region(location):
                raise ArmError(
                    "InvalidResourceGroupLocation",
                    f"Invalid resource group location '{location}'. The Resource group already exists in location "
                    f"'{before}'.",
                    status=409,
                )

    def complete(self, request: Request) -> Properties:
        return {
            **request.body,
            "location": request.location,
            "name": request.names["resourceGroupName"],
            "properties": {"provisioningState": "Succeeded"},
            "type": self.type,
        }

    def check_delete(self, request: Request) -> None:
        if request.before is not None and request.before.properties.get("managedBy"):
            raise ArmError(
                "ResourceGroupManaged",
                f"Resource group '{request.before.name}' is managed by {request.before.properties['managedBy']}.",
                status=409,
                hint="Delete that resource instead.",
            )


class FeatureRegistration(Kind):
    """The registration of a preview feature: answered at once as Registering, and Registered some time later."""

    token = "azure-native:features:SubscriptionFeatureRegistration"
    type = REGISTRATION
    path = (
        "/subscriptions/{subscriptionId}/providers/Microsoft.Features/featureProviders/{providerNamespace}"
        "/subscriptionFeatureRegistrations/{featureName}"
    )
    autoname = "copy"
    duration = "registration"

    def check(self, request: Request) -> None:
        namespace, name = request.names["providerNamespace"], request.names["featureName"]
        known = request.facts.features(namespace)
        if name.lower() not in (each.lower() for each in known):
            nearest = difflib.get_close_matches(name, known, n=1)
            raise ArmError(
                "FeatureNotFound",
                f"The feature '{name}' could not be found in namespace '{namespace}'.",
                status=404,
                hint=f"Did you mean '{nearest[0]}'?" if nearest else "",
            )

    def complete(self, request: Request) -> Properties:
        given = dict(request.body.get("properties") or {})
        facts = request.facts
        before = request.before.properties["properties"] if request.before else {}
        return {
            "name": request.names["featureName"],
            "properties": {
                "approvalType": "AutoApproval",
                "authorizationProfile": {},
                "shouldFeatureDisplayInPortal": False,
                **given,
                "displayName": request.names["featureName"],
                "featureName": request.names["featureName"],
                "providerNamespace": request.names["providerNamespace"],
                "registrationDate": before.get("registrationDate", now()),
                "state": "Registered" if before.get("state") == "Registered" else "Registering",
                "subscriptionId": facts.subscription,
                "tenantId": facts.tenant,
            },
            "type": self.type,
        }

    def absent(self, facts: AzureFacts, names: Mapping[str, str]) -> Properties | None:
        known = {each.lower() for each in facts.features(names["providerNamespace"])}
        if not facts.features_always_there or names["featureName"].lower() not in known:
            return None
        return {
            "name": names["featureName"],
            "properties": {
                "featureName": names["featureName"],
                "providerNamespace": names["providerNamespace"],
                "state": "NotRegistered",
                "subscriptionId": facts.subscription,
                "tenantId": facts.tenant,
            },
            "type": self.type,
        }

    def on_finished(self, facts: AzureFacts, state: State, record: Record) -> None:
        record.properties["properties"]["state"] = "Registered"

    def on_failed(self, state: State, record: Record) -> None:
        record.properties["properties"]["state"] = "NotRegistered"


class Deployment(Kind):
    """A template deployed to the subscription; of what a template can hold, registrations of features are emulated."""

    token = "azure-native:resources:DeploymentAtSubscriptionScope"
    type = "Microsoft.Resources/deployments"
    path = "/subscriptions/{subscriptionId}/providers/Microsoft.Resources/deployments/{deploymentName}"
    rule = NameRule(r"[\w().-]{1,64}", "1-64 letters, digits, underscores, parentheses, hyphens and periods")
    replaces = frozenset({"location"})
    tracked = True

    def check(self, request: Request) -> None:
        for kind, names in _registrations(request):
            inner_id = kind.id(request.facts, names)
            before = request.state.get(inner_id)
            kind.check(Request(request.facts, request.state, inner_id, names, {}, before))

    def complete(self, request: Request) -> Properties:
        found = [kind.id(request.facts, names) for kind, names in _registrations(request)]
        return {
            "location": request.location,
            "name": request.names["deploymentName"],
            "properties": {
                "correlationId": stable_uuid(request.id),
                "duration": "PT1S",
                "mode": request.body["properties"]["mode"],
                "outputResources": [{"id": each} for each in found],
                "provisioningState": "Succeeded",
                "timestamp": now(),
            },
            "type": self.type,
            **({"tags": request.body["tags"]} if request.body.get("tags") else {}),
        }

    def on_started(self, request: Request, record: Record) -> None:
        for kind, names in _registrations(request):
            inner_id = kind.id(request.facts, names)
            before = request.state.get(inner_id)
            if before is not None:
                continue
            inner = Request(request.facts, request.state, inner_id, names, {}, before)
            record.hidden.setdefault("begun", []).append(inner_id)
            request.state.put(Record(inner_id, kind.token, kind.type, kind.complete(inner)))


def _registrations(request: Request) -> list[tuple[FeatureRegistration, dict[str, str]]]:
    """Return the features that a template registers. Raises ArmError for anything else in it."""
    template = (request.body.get("properties") or {}).get("template") or {}
    resources = template.get("resources") or []
    found = []
    for each in resources.values() if isinstance(resources, dict) else resources:
        kind, name = str(each.get("type")), str(each.get("name"))
        if kind.lower() != REGISTRATION.lower() or name.count("/") != 1:
            raise ArmError(
                "InvalidTemplate",
                f"The emulated Azure does not emulate {kind} '{name}' in a template: it emulates {REGISTRATION} with a "
                "name of the form '<provider namespace>/<feature>'.",
            )
        namespace, _, feature = name.partition("/")
        found.append((FeatureRegistration(), {"providerNamespace": namespace, "featureName": feature}))
    return found


def registered(facts: AzureFacts, state: State, namespace: str, name: str) -> bool:
    """Tell whether a preview feature is registered by now."""
    kind = FeatureRegistration()
    found = state.get(kind.id(facts, {"providerNamespace": namespace, "featureName": name}))
    return found is not None and found.properties["properties"]["state"] == "Registered"
