"""Azure's GPU sizes, and the regions that offer them.

Sources: the size series' pages of Microsoft's documentation (`MicrosoftDocs/azure-compute-docs`, articles/
virtual-machines/sizes/gpu-accelerated); quota families and regions as `Azure/karpenter-provider-azure` publishes them
(pkg/providers/instancetype/known_skus.yaml; pkg/providers/pricing, from Azure's retail prices).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from components.azure.baselines import THRESHOLDS
from components.nodes.machines import Machine

REGIONS_AS_OF: Final = date(2026, 6, 18)
"""When Azure published the prices from which the regions below are taken: a size counts as offered where it has one."""


def _regions(names_in_a_row: str) -> frozenset[str]:
    return frozenset(names_in_a_row.split())


REGIONS: Final = _regions(
    """
    australiacentral australiacentral2 australiaeast australiasoutheast austriaeast brazilsouth brazilsoutheast
    canadacentral canadaeast centralindia centralus chilecentral eastasia eastus eastus2 francecentral francesouth
    germanynorth germanywestcentral indonesiacentral israelcentral italynorth japaneast japanwest jioindiacentral
    jioindiawest koreacentral koreasouth malaysiawest mexicocentral newzealandnorth northcentralus northeurope
    norwayeast norwaywest polandcentral qatarcentral southafricanorth southafricawest southcentralus southeastasia
    southindia spaincentral swedencentral swedensouth switzerlandnorth switzerlandwest uaecentral uaenorth uksouth
    ukwest westcentralus westeurope westindia westus westus2 westus3
    """
)

_ND_H100: Final = _regions(
    """
    australiaeast canadacentral centralus eastus eastus2 japaneast japanwest koreacentral northcentralus
    polandcentral southafricanorth southafricawest southcentralus spaincentral swedencentral switzerlandnorth
    uaenorth uksouth westcentralus westeurope westus westus2 westus3
    """
)

_ND_H200: Final = _regions(
    """
    australiaeast australiasoutheast brazilsouth centralus eastus2 francecentral germanywestcentral indonesiacentral
    italynorth japaneast japanwest koreasouth malaysiawest mexicocentral northcentralus northeurope norwayeast
    polandcentral southafricanorth southeastasia spaincentral swedencentral uaenorth uksouth ukwest westus westus2
    westus3
    """
)

_ND_A100_80: Final = _regions(
    """
    australiaeast brazilsouth canadacentral canadaeast centralus eastus eastus2 francecentral germanynorth
    italynorth japaneast japanwest norwayeast polandcentral southafricanorth southcentralus southindia spaincentral
    swedencentral switzerlandnorth switzerlandwest uaecentral uaenorth uksouth ukwest westeurope westus westus2
    westus3
    """
)

_ND_A100_40: Final = _regions(
    """
    eastus italynorth southcentralus westeurope westus2
    """
)

_ND_GB200: Final = _regions(
    """
    australiaeast australiasoutheast brazilsouth canadaeast centralus eastus eastus2 germanywestcentral
    indonesiacentral italynorth koreacentral koreasouth northcentralus southindia spaincentral uaecentral uksouth
    westus2 westus3
    """
)

_NC_H100: Final = _regions(
    """
    australiaeast canadacentral centralindia centralus eastus eastus2 germanywestcentral indonesiacentral japaneast
    jioindiacentral jioindiawest koreacentral koreasouth malaysiawest northcentralus northeurope southcentralus
    southeastasia spaincentral swedencentral switzerlandnorth uaenorth uksouth westeurope westus westus2 westus3
    """
)

_NC_A100: Final = _regions(
    """
    australiaeast brazilsouth canadacentral centralindia centralus eastus eastus2 francecentral germanywestcentral
    italynorth japaneast jioindiacentral jioindiawest koreacentral northcentralus northeurope polandcentral
    southcentralus southeastasia spaincentral swedencentral switzerlandnorth uksouth westeurope westus westus2
    westus3
    """
)

REGIONS_WITHOUT_ZONES: Final = _regions(
    """
    australiacentral australiacentral2 australiasoutheast brazilsoutheast canadaeast francesouth germanynorth koreasouth
    northcentralus norwaywest southafricawest southindia switzerlandwest uaecentral ukwest westcentralus westindia
    westus
    """
)
"""Regions without availability zones (`MicrosoftDocs/azure-docs`, articles/reliability/regions-list.md, March 2025)."""

REGIONS_WITHOUT_PAIR: Final = _regions(
    """
    austriaeast indonesiacentral israelcentral italynorth mexicocentral newzealandnorth polandcentral qatarcentral
    spaincentral
    """
)
"""Regions whose storage has no copies in another one, as of the same list."""

MOST_PODS: Final = 250
"""Pods on one node of a cluster with overlay networking, at most and by default."""

_DOCUMENTATION: Final = "https://learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated/"
_RESERVED_PER_POD_MB: Final = 20
_RESERVED_MB: Final = 50
_EVICTION_MIB: Final = 100


@dataclass(frozen=True, kw_only=True)
class VmSize:
    """A machine type with NVIDIA GPUs.

    memory_gib: nominal. gpu_product: the value of the label `nvidia.com/gpu.product`.
    infiniband_ports: one for each GPU where there are any.
    infiniband_feature: the subscription needs the feature AKSInfinibandSupport for the ports to reach other nodes. For
        GB200 and GB300 the same feature has to be off (`Azure/ai-infrastructure-on-azure`,
        infrastructure_references/aks/README.md).
    family: name of the quota of vCPUs, in each region, from which its nodes are taken.
    regions: those that offer it, None where no source says.
    """

    name: str
    vcpus: int
    memory_gib: int
    gpus: int
    gpu_product: str
    infiniband_ports: int = 0
    infiniband_feature: bool = False
    family: str
    regions: frozenset[str] | None
    source: str

    @property
    def refuses_infiniband_feature(self) -> bool:
        """Whether its ports work only while the subscription does not have the feature."""
        return bool(self.infiniband_ports) and not self.infiniband_feature

    def machine(self, *, max_pods: int = MOST_PODS) -> Machine:
        """Return a node as its pods can use it: without what AKS keeps for the kubelet.

        Reservations: `MicrosoftDocs/azure-aks-docs`, articles/aks/node-resource-reservations.md (1.29 and later). Its
        table ends at 64 cores; larger nodes continue it with its last step of 10 millicores for each core.
        """
        kept = (_RESERVED_PER_POD_MB * max_pods + _RESERVED_MB) * 1000**2 + _EVICTION_MIB * 1024**2
        return Machine(
            name=self.name,
            cpu=f"{1000 * self.vcpus - _reserved_millicores(self.vcpus)}m",
            memory=f"{self.memory_gib - math.ceil(kept / 1024**3)}Gi",
            gpus=self.gpus,
            gpu_product=self.gpu_product,
            ports=self.infiniband_ports,
            pods=max_pods,
            source=self.source,
            thresholds=THRESHOLDS.get(self.name, {}),
        )


GPU_SIZES: Final = {
    size.name: size
    for size in (
        VmSize(
            name="Standard_ND96isr_H100_v5",
            vcpus=96,
            memory_gib=1900,
            gpus=8,
            gpu_product="NVIDIA-H100-80GB-HBM3",
            infiniband_ports=8,
            infiniband_feature=True,
            family="standardNDSH100v5Family",
            regions=_ND_H100,
            source=f"{_DOCUMENTATION}ndh100v5-series",
        ),
        VmSize(
            name="Standard_ND96isr_H200_v5",
            vcpus=96,
            memory_gib=1850,
            gpus=8,
            gpu_product="NVIDIA-H200",
            infiniband_ports=8,
            infiniband_feature=True,
            family="standardNDISRH200V5Family",
            regions=_ND_H200,
            source=f"{_DOCUMENTATION}nd-h200-v5-series",
        ),
        VmSize(
            name="Standard_ND96amsr_A100_v4",
            vcpus=96,
            memory_gib=1900,
            gpus=8,
            gpu_product="NVIDIA-A100-SXM4-80GB",
            infiniband_ports=8,
            infiniband_feature=True,
            family="standard NDAMSv4_A100Family",
            regions=_ND_A100_80,
            source=f"{_DOCUMENTATION}ndma100v4-series",
        ),
        VmSize(
            name="Standard_ND96asr_v4",
            vcpus=96,
            memory_gib=900,
            gpus=8,
            gpu_product="NVIDIA-A100-SXM4-40GB",
            infiniband_ports=8,
            infiniband_feature=True,
            family="Standard NDASv4_A100 Family",
            regions=_ND_A100_40,
            source=f"{_DOCUMENTATION}ndasra100v4-series",
        ),
        VmSize(
            name="Standard_ND128isr_NDR_GB200_v6",
            vcpus=128,
            memory_gib=900,
            gpus=4,
            gpu_product="NVIDIA-GB200",
            infiniband_ports=4,
            family="standardNDISRGB200V6NDRFamily",
            regions=_ND_GB200,
            source=f"{_DOCUMENTATION}nd-gb200-v6-series",
        ),
        VmSize(
            name="Standard_ND128isr_GB300_v6",
            vcpus=128,
            memory_gib=864,
            gpus=4,
            gpu_product="NVIDIA-GB300",
            infiniband_ports=4,
            family="standardNDISRGB300V6Family",
            regions=None,
            source=f"{_DOCUMENTATION}nd-gb300-v6-series",
        ),
        VmSize(
            name="Standard_NC40ads_H100_v5",
            vcpus=40,
            memory_gib=320,
            gpus=1,
            gpu_product="NVIDIA-H100-NVL",
            family="StandardNCadsH100v5Family",
            regions=_NC_H100,
            source=f"{_DOCUMENTATION}ncadsh100v5-series",
        ),
        VmSize(
            name="Standard_NC80adis_H100_v5",
            vcpus=80,
            memory_gib=640,
            gpus=2,
            gpu_product="NVIDIA-H100-NVL",
            family="StandardNCadsH100v5Family",
            regions=_NC_H100,
            source=f"{_DOCUMENTATION}ncadsh100v5-series",
        ),
        VmSize(
            name="Standard_NC24ads_A100_v4",
            vcpus=24,
            memory_gib=220,
            gpus=1,
            gpu_product="NVIDIA-A100-80GB-PCIe",
            family="StandardNCADSA100v4Family",
            regions=_NC_A100,
            source=f"{_DOCUMENTATION}nca100v4-series",
        ),
        VmSize(
            name="Standard_NC48ads_A100_v4",
            vcpus=48,
            memory_gib=440,
            gpus=2,
            gpu_product="NVIDIA-A100-80GB-PCIe",
            family="StandardNCADSA100v4Family",
            regions=_NC_A100,
            source=f"{_DOCUMENTATION}nca100v4-series",
        ),
        VmSize(
            name="Standard_NC96ads_A100_v4",
            vcpus=96,
            memory_gib=880,
            gpus=4,
            gpu_product="NVIDIA-A100-80GB-PCIe",
            family="StandardNCADSA100v4Family",
            regions=_NC_A100,
            source=f"{_DOCUMENTATION}nca100v4-series",
        ),
    )
}


def _reserved_millicores(cores: int) -> int:
    """Return what AKS keeps of a node's CPU: 60 for the first core, 40, 20 and 20 for the next three, then 10 each."""
    return sum((60, 40, 20, 20)[: min(cores, 4)]) + 10 * max(0, cores - 4)


MACHINES: Final = {name: size.machine() for name, size in GPU_SIZES.items()}
"""The same as nodes of an AKS cluster that has AKS's defaults."""

_NAME: Final = re.compile(
    r"Standard_(?P<family>[A-Z]+)(?P<cores>[0-9]+)(?:-(?P<active>[0-9]+))?(?P<features>[a-z]*)[A-Za-z0-9_]*"
)
_COUNTED: Final = frozenset({"E", "F", "L", "M"})
"""Families whose names state vCPUs from the first version on (learn.microsoft.com/azure/virtual-machines/sizes)."""
_OLD_D: Final = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 11: 2, 12: 4, 13: 8, 14: 16, 15: 20}
"""vCPUs of families D and DS up to version 2, by the number in the name (articles `dv2-dsv2-series`)."""


def is_vm_size(name: str) -> bool:
    """Return whether a name is built as Azure's names of machine types are."""
    return _NAME.fullmatch(name) is not None


def family_of(name: str) -> str:
    """Return the letters that name a machine type's family, such as ND, or nothing for a name of another form."""
    match = _NAME.fullmatch(name)
    return match["family"] if match else ""


def takes_premium_disks(name: str) -> bool:
    """Return whether a machine type attaches premium disks, which an s in its name says (vm-naming-conventions)."""
    match = _NAME.fullmatch(name)
    return match is not None and ("s" in match["features"] or match["family"].endswith("S"))


def vcpus_of(name: str) -> int | None:
    """Return the vCPUs that pods of a machine type have, None where its name does not say.

    From the third version of a family on, the number in its name is that of the vCPUs, or of the active ones
    (learn.microsoft.com/azure/virtual-machines/vm-naming-conventions), and in families A of version 2, E, F, L and M
    always. In other older names it counts sizes, of which only those of D and DS are known here.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    suffix = re.search(r"_v([0-9]+)$", name)
    version, number = int(suffix[1]) if suffix else 1, int(match["cores"])
    if match["active"]:
        return int(match["active"])
    if version >= 3 or match["family"] in _COUNTED or (match["family"], version) == ("A", 2):
        return number
    return _OLD_D.get(number) if match["family"] in ("D", "DS") else None
