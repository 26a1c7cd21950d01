"""`mlbatch status`: report the platform's objects on a cluster."""

import json
from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from cli.ending import failed, written
from runner import report, webhooks
from runner.picture.page import picture
from runner.report import connect, sections


def run(kubeconfig: Path | None, context: str | None, output: str, file: Path | None) -> int:
    """Print or write the report. Return the exit code, 2 if the cluster cannot be read."""
    try:
        client = connect(kubeconfig, context, report.SECONDS)
        if output == "html":
            text = picture(client, context or "of the current context")
        else:
            found = [*sections(client), *webhooks.report(client)]
            if output == "json":
                content = {section.title: section.content() for section in found}
                text = json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
            else:
                text = "\n\n".join(section.text() for section in found) + "\n"
    except ConfigException as error:
        return failed(f"the kubeconfig cannot be used: {error}")
    except (ApiException, HTTPError) as error:
        return failed(f"the cluster does not answer as expected: {report.message(error)}")
    return written("report", text, file)
