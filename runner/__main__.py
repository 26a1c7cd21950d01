"""What a cluster holds of the platform: `python -m runner status --kubeconfig FILE --context NAME`.

With `--html status.html` also as a picture, in one file that any browser opens. It only reads.
Without options it looks at the cluster that kubectl would take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from runner import report, webhooks
from runner.picture import draw
from runner.report import connect, platform_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; return the process's exit code, 1 where the cluster cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m runner", description=__doc__.split("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, metavar="command")
    status = commands.add_parser(
        "status", help="print nodes, queues, teams, workloads and webhooks that nobody answers"
    )
    status.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config")
    status.add_argument("--context", help="default: the file's current context")
    status.add_argument("--html", type=Path, metavar="FILE", help="write a picture of it, too")
    options = parser.parse_args(arguments)
    try:
        client = connect(options.kubeconfig, options.context, report.SECONDS)
        print("\n\n".join(part for part in (platform_report(client), webhooks.report(client)) if part))
        if options.html is not None:
            print(f"\n{draw(client, options.html, options.context or 'of the current context')}")
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


if __name__ == "__main__":
    sys.exit(main())
