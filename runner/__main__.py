"""Look at a cluster: `python -m runner status --kubeconfig FILE --context NAME` prints what it holds of the platform.

With `--html status.html` also as a picture, in one file that any browser opens. `pulumi stack export | python -m runner
pending` prints the options by which `pulumi refresh` finishes an update that was killed. Both only read. Without
options they look at the cluster that kubectl would take.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from runner import pending, report, webhooks
from runner.picture import draw
from runner.report import Client, connect, platform_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the process's exit code, 1 where the cluster cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m runner", description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, metavar="command")
    status = commands.add_parser(
        "status", help="print nodes, queues, teams, workloads and webhooks that nobody answers"
    )
    unfinished = commands.add_parser(
        "pending", help="print the options of `pulumi refresh` for a killed update; reads `pulumi stack export`"
    )
    for each, look in ((status, _status), (unfinished, _pending)):
        each.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config")
        each.add_argument("--context", help="default: the file's current context")
        each.set_defaults(look=look)
    status.add_argument("--html", type=Path, metavar="FILE", help="write a picture of it, too")
    options = parser.parse_args(arguments)
    try:
        client = connect(options.kubeconfig, options.context, report.SECONDS)
        options.look(client, options)
    except ConfigException as error:
        print(f"error: the kubeconfig cannot be used: {error}", file=sys.stderr)
        return 1
    except (ApiException, HTTPError) as error:
        print(f"error: the cluster does not answer as expected: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: the picture cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


def _status(client: Client, options: argparse.Namespace) -> None:
    print("\n\n".join(part for part in (platform_report(client), webhooks.report(client)) if part))
    if options.html is not None:
        print(f"\n{draw(client, options.html, options.context or 'of the current context')}")


def _pending(client: Client, options: argparse.Namespace) -> None:
    deployment = json.load(sys.stdin)["deployment"] or {}
    print("\n".join(pending.options(dict(pending.existing(client, pending.creations(deployment))))))


if __name__ == "__main__":
    sys.exit(main())
