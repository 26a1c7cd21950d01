"""`mlbatch repair`: list nodes in repair, report them, and take them out of service or back."""

import json
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.dynamic.exceptions import ConflictError
from urllib3.exceptions import HTTPError

from cli.ending import FINE, failed
from repair import nodes, replacing, support
from repair.nodes import RepairError
from runner import report
from runner.report import Client, connect, in_repair, objects


def run(
    action: str,
    node: str | None,
    kubeconfig: Path | None,
    context: str | None,
    output: str,
    *,
    reason: str,
    case: str,
    move: bool,
    untested: bool,
) -> int:
    """Take one step and print what happened. Return the exit code, 2 if the step cannot be taken."""
    if action == "start" and not reason:
        return failed("start needs the reason: add --reason TEXT")
    if action != "list" and node is None:
        return failed(f"{action} needs a node: mlbatch repair {action} NODE")
    try:
        client = connect(kubeconfig, context, report.SECONDS)
        if action == "list" or node is None:
            print(listed(client, output))
        else:
            print(step(client, action, node, reason, case, move, untested))
    except RepairError as error:
        return failed(error)
    except ConflictError:
        return failed(f"node {node} changed meanwhile. Run the command again.")
    except ConfigException as error:
        return failed(f"the kubeconfig cannot be used: {error}")
    except (ApiException, HTTPError) as error:
        return failed(f"the cluster does not answer as expected: {report.message(error)}")
    return FINE


def listed(client: Client, output: str) -> str:
    """Return the nodes in repair."""
    found = list(in_repair(objects(client, "v1", "Node")))
    if output == "json":
        return json.dumps([row for section in found for row in section.content()], indent=2, ensure_ascii=False)
    return found[0].text() if found else "No node is in repair."


def step(client: Client, action: str, node: str, reason: str, case: str, move: bool, untested: bool) -> str:
    """Take a step with a node; return what to print. Raises RepairError."""
    if action == "start":
        nodes.start(client, node, reason, move=move)
        return f"Node {node} is out of service. When it is repaired, run `mlbatch repair return {node}`."
    if action == "report":
        if case:
            nodes.reported(client, node, case)
            return f"Node {node}: recorded case {case}."
        item = nodes.find(client, node)
        return support.report(item, nodes.found(item)).rstrip()
    if action == "replace":
        return replacing.commands(nodes.find(client, node)).rstrip()
    if untested:
        nodes.release(client, node)
        return f"Node {node} is back in service. It was not tested."
    job = nodes.test(client, node)
    return f"Job {job} tests node {node}. It returns to service when the test has passed: `mlbatch repair list`."
