"""Target `cpouta`: what everything else asks of it. Its resources are in `deploy`, which alone loads Pulumi's SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.node_pool import NodePool
from components.kubernetes.volumes import AccessMode
from components.openstack.flavors import FLAVORS
from stacks.config.errors import ConfigError, key, listed
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.derived.partial import PartialSettings
from stacks.targets.cpouta import key_file, project_facts, validation
from stacks.targets.cpouta.project_facts import ProjectError, ProjectFacts
from stacks.targets.cpouta.settings import NODE_IMAGES, CpoutaSettings, OpenstackSettings
from stacks.targets.spec import TargetSpec, UnansweredError

if TYPE_CHECKING:
    from stacks.config.inputs import StackInputs
    from stacks.layers.releases import Releases

KIND_CLASS: Final = "standard"
"""kind's storage class, of folders of its node (kubernetes-sigs/kind, pkg/build/nodeimage/const_storage.go). Its
provisioner makes no volume that many nodes may mount (rancher/local-path-provisioner, provisioner.go)."""


class Cpouta(TargetSpec[CpoutaSettings]):
    """A VM on OpenStack, with a cluster of kind on it."""

    name = "cpouta"
    summary = "a VM that the stack creates on CSC's OpenStack cloud cPouta, with a kind cluster on it"
    settings = CpoutaSettings
    sections = (
        "kubernetes",
        "openstack",
        "gpu",
        "nvshare",
        "scheduling",
        "queueing",
        "tenancy",
        "teams",
        "recovery",
        "workloads",
        "monitoring",
        "mlops",
        "mirror",
        "samples",
    )
    secrets = (MLOPS_PASSWORD,)
    namespaces = ("local-path-storage",)
    count_key = validation.FLAVOR
    version_path = ("openstack", "kind", "kubernetes")
    kubernetes_versions = tuple(NODE_IMAGES)
    shared_access = AccessMode.ONE_NODE
    is_one_node = True
    has_load_balancers = False
    has_volumes = False
    gpu_advice = f"set {key(validation.FLAVOR)} to one of {listed(name for name, one in FLAVORS.items() if one.gpus)}"

    def pools(self, partial: PartialSettings) -> Sequence[NodePool]:
        """Return the one node."""
        openstack = partial.section(OpenstackSettings)
        return [NodePool(count=1, shape=openstack.shape)] if openstack is not None else ()

    def shared_files(self, settings: CpoutaSettings) -> str:
        """Return kind's class, whose volumes any number of pods mount on the one node that there is."""
        return KIND_CLASS

    def fabric(self, partial: PartialSettings, pool: NodePool) -> Fabric:
        """Return no network: there is one node."""
        return NO_RDMA

    def kubernetes_version(self, partial: PartialSettings) -> str | None:
        """Return the version that the settings ask for."""
        openstack = partial.section(OpenstackSettings)
        return openstack.kind.kubernetes if openstack is not None else None

    def ask(self, partial: PartialSettings, environment: Mapping[str, str]) -> ProjectFacts | None:
        """Ask the project of the credentials what it offers and has room for, and look for the private key."""
        openstack = partial.section(OpenstackSettings)
        if openstack is None:
            return None
        try:
            facts = project_facts.ask(environment, name=openstack.name, existing=openstack.volume.existing)
        except ProjectError as error:
            raise UnansweredError(
                ConfigError(
                    path=validation.SECTION,
                    message=f"the project could not be asked for flavor, image, network, pool and quotas: {error}",
                    expected="credentials of the project in the environment",
                    hint=error.hint,
                )
            ) from None
        found = key_file.obstacle(openstack.private_key_file, openstack.ssh_public_key, environment)
        return replace(facts, obstacle=found)

    def check(self, partial: PartialSettings) -> Iterator[ConfigError]:
        """Yield what the VM is too small for, and what the project does not have, or has no room for."""
        openstack, facts = partial.section(OpenstackSettings), partial.site
        if openstack is not None:
            yield from validation.fits(partial, openstack)
        if openstack is not None and isinstance(facts, ProjectFacts):
            yield from validation.offers(openstack, facts)
            yield from validation.room(openstack, facts)

    def warnings(self, partial: PartialSettings) -> Iterator[str]:
        """Yield what is outlived, an example or not offered, who was let in, and what becomes of the VM there."""
        openstack, facts = partial.section(OpenstackSettings), partial.site
        if openstack is not None:
            yield from validation.examples(openstack)
            yield from validation.ended(openstack)
            yield from validation.unoffered(partial, openstack)
        if openstack is not None and isinstance(facts, ProjectFacts):
            yield from validation.warnings(openstack, facts)
            yield from validation.another_password(partial, openstack, facts)

    def deploy(self, inputs: StackInputs[CpoutaSettings], releases: Releases) -> Mapping[str, Any]:
        """Register the VM and the platform on it."""
        from stacks.targets.cpouta.deploy import deploy

        return deploy(inputs, releases)


TARGET: Final = Cpouta()
