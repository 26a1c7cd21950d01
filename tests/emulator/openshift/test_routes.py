"""The status of Routes from the simulated router."""

from typing import Any

from emulator.openshift.routes import verdicts, with_host

DOMAIN = "apps.example"


def route(name: str, namespace: str = "prometheus", created: int = 0, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return {"metadata": {**metadata, "creationTimestamp": f"2026-11-22T10:00:0{created}Z"}, "spec": spec}


def admitted(*routes: dict[str, Any]) -> dict[str, str]:
    found = {}
    for each, body in verdicts(routes, DOMAIN):
        (ingress,) = body["status"]["ingress"]
        (condition,) = ingress["conditions"]
        assert condition["type"] == "Admitted"
        found[each["metadata"]["uid"]] = condition.get("reason") or condition["status"]
    return found


def test_a_route_without_a_host_gets_one_below_the_clusters_domain() -> None:
    patch = with_host(route("grafana"), DOMAIN)
    assert patch is not None
    assert patch["spec"] == {"host": "grafana-prometheus.apps.example"}
    assert patch["metadata"]["annotations"] == {"openshift.io/host.generated": "true"}
    named = with_host(route("grafana", subdomain="dashboards"), DOMAIN)
    assert named is not None
    assert named["spec"] == {"host": "dashboards.apps.example"}
    assert with_host(route("grafana", host="grafana.example"), DOMAIN) is None


def test_a_routes_status_has_its_router_and_host() -> None:
    ((_, body),) = verdicts([route("grafana", host="grafana.example")], DOMAIN)
    (ingress,) = body["status"]["ingress"]
    del ingress["conditions"][0]["lastTransitionTime"]
    assert ingress == {
        "conditions": [{"type": "Admitted", "status": "True"}],
        "host": "grafana.example",
        "routerCanonicalHostname": "router-default.apps.example",
        "routerName": "default",
        "wildcardPolicy": "None",
    }


def test_a_host_is_the_namespaces_that_had_it_first() -> None:
    first, later = route("a", "blue", 1, host="x.example"), route("b", "red", 2, host="x.example", path="/y")
    assert admitted(later, first) == {"blue/a": "True", "red/b": "HostAlreadyClaimed"}


def test_a_path_of_a_host_is_the_route_that_had_it_first() -> None:
    routes = [route("a", "blue", 1, host="x.example"), route("b", "blue", 2, host="x.example")]
    assert admitted(*routes) == {"blue/a": "True", "blue/b": "HostAlreadyClaimed"}
    routes[1]["spec"]["path"] = "/b"
    assert admitted(*routes) == {"blue/a": "True", "blue/b": "True"}


def test_a_status_is_not_written_again_until_it_changes() -> None:
    found = route("a", "blue", 1, host="x.example")
    ((_, body),) = verdicts([found], DOMAIN)
    assert admitted({**found, **body}) == {}
    assert admitted({**found, **body, "spec": {"host": "y.example"}}) == {"blue/a": "True"}
    assert admitted({**found, **body}, route("b", "red", 0, host="x.example")) == {
        "red/b": "True",
        "blue/a": "HostAlreadyClaimed",
    }


def test_a_route_waits_for_its_host() -> None:
    assert admitted(route("a")) == {}
