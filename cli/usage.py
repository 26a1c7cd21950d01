"""`mlbatch usage`: report the GPU hours of a month."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from cli.ending import FINE, FOUND, failed, written
from runner import report as cluster
from runner.usage.prometheus import UsageError, at_url, of_cluster
from runner.usage.records import month, read
from runner.usage.report import content, page, prices, report, sheet, text

_FORMATS = {"text": text, "json": content, "csv": sheet, "html": page}


def run(
    wanted: str | None,
    by: str,
    price: Sequence[str],
    prometheus: str | None,
    kubeconfig: Path | None,
    context: str | None,
    output: str,
    file: Path | None,
) -> int:
    """Print or write the report. Return the exit code: 1 if records are missing, 2 if none can be read."""
    try:
        priced, period = prices(price), month(wanted, datetime.now(UTC))
        if prometheus is not None:
            source = at_url(prometheus)
        else:
            source = of_cluster(cluster.connect(kubeconfig, context, cluster.SECONDS))
        usage = read(source, period)
        found = report(usage, by, priced, source.retention() if usage.missing else "")
    except UsageError as error:
        return failed(error)
    except ConfigException as error:
        return failed(f"the kubeconfig cannot be used: {error}")
    except (ApiException, HTTPError) as error:
        return failed(f"the cluster does not answer as expected: {cluster.message(error)}")
    return written("report", _FORMATS[output](found), file) or (FOUND if usage.missing else FINE)
