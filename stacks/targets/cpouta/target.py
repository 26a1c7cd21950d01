"""Target `cpouta`: a VM on CSC's OpenStack cloud, with a cluster of kind on it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from components.kubernetes.fabric import NO_RDMA
from components.kubernetes.node_pool import NodePool
from components.kubernetes.volumes import AccessMode
from components.openstack.flavors import FLAVORS
from stacks.config.errors import ConfigError, key, listed
from stacks.config.secrets import MLOPS_PASSWORD
from stacks.config.sections import Sections
from stacks.targets.cpouta import key_file, project_facts
from stacks.targets.cpouta.project_facts import ProjectFacts
from stacks.targets.cpouta.settings import FLAVOR, NODE_IMAGES, SECTION, CpoutaSettings, OpenstackSettings
from stacks.targets.cpouta.sign_in import ProjectError
from stacks.targets.spec import TargetSpec, UnansweredError, from_section, shared_sections

KIND_CLASS: Final = "standard"
"""kind's storage class, of folders of its node (kubernetes-sigs/kind, pkg/build/nodeimage/const_storage.go). Its
provisioner makes no volume that many nodes may mount (rancher/local-path-provisioner, provisioner.go)."""


def _ask(sections: Sections, environment: Mapping[str, str]) -> ProjectFacts | None:
    """Return facts about the project of the credentials, and about the private key."""
    openstack = sections.section(OpenstackSettings)
    if openstack is None:
        return None
    try:
        facts = project_facts.ask(environment, name=openstack.name, existing=openstack.volume.existing)
    except ProjectError as error:
        raise UnansweredError(
            ConfigError(
                SECTION, f"cannot read flavor, image, network, pool and quotas of the project: {error}", error.hint
            )
        ) from None
    found = key_file.obstacle(openstack.private_key_file, openstack.ssh_public_key, environment)
    return replace(facts, obstacle=found)


CPOUTA: Final = TargetSpec(
    name="cpouta",
    summary="a VM that the stack creates on CSC's OpenStack cloud cPouta, with a kind cluster on it",
    settings=CpoutaSettings,
    sections=("kubernetes", "openstack", *shared_sections("volcano", "health")),
    secrets=(MLOPS_PASSWORD,),
    namespaces=("local-path-storage",),
    count_key=FLAVOR,
    version_path=("openstack", "kind", "kubernetes"),
    kubernetes_versions=tuple(NODE_IMAGES),
    shared_access=AccessMode.ONE_NODE,
    is_one_node=True,
    has_load_balancers=False,
    has_volumes=False,
    gpu_advice=f"set {key(FLAVOR)} to one of {listed(name for name, one in FLAVORS.items() if one.gpus)}",
    pools=from_section(OpenstackSettings, lambda openstack: [NodePool(count=1, shape=openstack.shape)], []),
    shared_files=lambda _: KIND_CLASS,  # any number of pods mount its volumes on the one node
    fabric=lambda *_: NO_RDMA,
    kubernetes_version=from_section(OpenstackSettings, lambda openstack: openstack.kind.kubernetes, None),
    ask=_ask,
)
