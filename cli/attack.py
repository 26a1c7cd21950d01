"""`mlbatch attack`: try what a team member must not be able to do."""

from pathlib import Path

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from attack.attacks import attacks
from attack.member import NAMESPACE, UselessError
from attack.trial import tried
from cli.ending import FINE, FOUND, failed, interrupted
from runner.report import message


def show() -> int:
    """Print the attacks; return the exit code."""
    for each in attacks():
        print(f"{each.name}: {each.gains}")
    return FINE


def run(kubeconfig: Path | None, context: str | None, like: str | None) -> int:
    """Try every attack and print the results. Return the exit code, 1 if an attack goes through."""
    try:
        found = tried(kubeconfig, context, like)
    except (UselessError, ApiException, ConfigException, HTTPError, OSError) as error:
        return failed(f"the attacks could not be tried: {message(error)}")
    except KeyboardInterrupt:
        return interrupted(f"delete the namespace {NAMESPACE} where it is left")
    return FOUND if any(outcome.through for _, outcome in found) else FINE
