"""The deployments in the setup menus of the OSS MLOps platform, by their numbers.

Source: OSS-MLOPS-PLATFORM/oss-mlops-platform at 087a88b, integration-setup.sh. It asks for the menu and then for the
number in it. deployment/envs has a folder for each. The numbers of cores are that script's.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """An entry of a menu.

    integration: the menu with integration has the forwarder of jobs to HPC systems.
    option: its number.
    overlay: name of its kustomize folder.
    content: text in the menu.
    cores: CPU cores that it needs.
    """

    integration: bool
    option: int
    overlay: str
    content: str
    cores: int

    @property
    def folder(self) -> str:
        """Path of the overlay in the repository."""
        return f"deployment/envs/{self.overlay}"


_KUBEFLOW: Final = 12
_PIPELINES: Final = 8

MENU: Final = tuple(
    Deployment(integration=integration, option=option, overlay=overlay, content=content, cores=cores)
    for integration, option, overlay, content, cores in (
        (False, 1, "kubeflow-monitoring", "Kubeflow (all components)", _KUBEFLOW),
        (False, 2, "kubeflow", "Kubeflow (without monitoring)", _KUBEFLOW),
        (False, 3, "standalone-kfp-monitoring", "Standalone KFP", _PIPELINES),
        (False, 4, "standalone-kfp", "Standalone KFP (without monitoring)", _PIPELINES),
        (False, 5, "standalone-kfp-kserve-monitoring", "Standalone KFP and Kserve", _PIPELINES),
        (False, 6, "standalone-kfp-kserve", "Standalone KFP and Kserve (without monitoring)", _PIPELINES),
        (True, 1, "integration-kubeflow-monitoring", "Kubeflow (all components)", _KUBEFLOW),
        (True, 2, "integration-reduced-kubeflow-monitoring", "Kubeflow (some components removed)", _KUBEFLOW),
        (True, 3, "integration-standalone-kfp-monitoring", "Standalone KFP", _PIPELINES),
        (True, 4, "integration-standalone-kfp-kserve-monitoring", "Standalone KFP and Kserve", _PIPELINES),
    )
)


def entries(*, integration: bool) -> list[Deployment]:
    """Return the entries of one of the two menus."""
    return [entry for entry in MENU if entry.integration is integration]


def find(*, integration: bool, option: int) -> Deployment:
    """Return an entry by its number. Raises KeyError if its menu does not have the number."""
    for entry in entries(integration=integration):
        if entry.option == option:
            return entry
    raise KeyError(option)
