"""Errors outside the sections: secrets, the mirror, the kubeconfig, and values from the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stacks.config.secrets import Concealed
from tests.unit.configurations import aks
from tests.unit.test_cpouta_settings import shipped as cpouta

_SIGNED: Final = "https://a.example/x?sv=2024-11-04&sp=rl&sig=c2VjcmV0"
_TEAM: Final = {"name": "blue", "users": [], "share": 1}

Case = tuple[Mapping[str, Any], Mapping[str, str]]
"""A configuration and the environment that the engine runs in."""


def _aks(**values: Any) -> Case:
    return {**aks(), **values}, {}


def _existing(environment: Mapping[str, str] | None = None, **values: Any) -> Case:
    return {"target": "existing", **values}, environment or {}


INTERPRETED: Final[tuple[Case, ...]] = (
    # secrets
    _aks(jupyterToken="hunter2"),
    _aks(jupyterToken=Concealed.EMPTY),
    _aks(alertSlackUrl=Concealed.NO_ADDRESS),
    _aks(alertPagerdutyKey=Concealed.NO_KEY),
    _aks(blobSasToken=Concealed.SECRET),
    _aks(objectStoreSecretKey=Concealed.SECRET),
    _existing(blobSasToken="hunter2", kubernetes={"kubeconfig": "there.yaml"}),
    ({**cpouta(), "jupyterToken": 12345}, {}),
    _aks(azure=Concealed.SECRET),
    _aks(teams=Concealed.SECRET),
    _aks(target=Concealed.SECRET),
    _aks(mirror={"artifacts": _SIGNED}),
    _aks(workloads={"nccl": {"image": _SIGNED}}),
    _aks(storage={"volumes": [{"name": "data", "container": _SIGNED}]}),
    _existing(cluster={"registry": _SIGNED}, kubernetes={"kubeconfig": "there.yaml"}),
    # keys
    _aks(**{"mlbach:nodes": Concealed.SECRET}),
    _aks(azur={}),
    _aks(nodes={"count": 3}),
    ({}, {}),
    ({"target": "akz"}, {}),
    ({"target": ["aks"]}, {}),
    ({"target": "aks"}, {}),
    # the mirror
    *(
        _aks(mirror={"artifacts": place})
        for place in (
            "http://mirror.example.org",
            "ftp://mirror.example.org",
            "https://a:b@mirror.example.org",
            "https://mirror.example.org/x?token=y",
            "https://mirror.example.org/x#y",
            "https://mirror example.org",
            "https://[mirror",
            "https://a@[mirror",
            "https://",
            "",
            "/" + "a" * 5000,
            "https://[::1",
            "https://mirror.example.org:99999/",
            "https://robot@mirror.example.org/x",
            "/nowhere/at/all",
            " ",
            "~nobody-at-all/x",
        )
    ),
    *(
        _aks(mirror={"images": place})
        for place in ("https://registry.example.org", "registry.example.org:1/x:2", "a b", "/", "")
    ),
    _aks(mirror={"images": "registry.example.org/mirror/", "artifacts": "/"}),
    # the kubeconfig
    _existing(),
    _existing(kubernetes={"kubeconfig": "not-there.yaml"}),
    _existing({"KUBECONFIG": "/nowhere/one:/nowhere/two"}),
    _existing({"KUBECONFIG": "{apiVersion: v1, kind: Config, users: []}"}),
    _existing(kubernetes={"kubeconfig": "a\0b"}),
    _existing(kubernetes={"kubeconfig": "/"}),
    _existing(kubernetes={"kubeconfig": "{apiVersion: v1, kind: Config, users: []}"}),
    # teams
    _aks(teams=[{**_TEAM, "users": ["ada", "ada"]}, _TEAM]),
    _aks(teams=[{**_TEAM, "name": "slack"}]),
    _aks(teams=[{**_TEAM, "name": "Blue Team"}]),
    _aks(teams=[{**_TEAM, "users": ["system:masters", "a\tb"]}]),
    _aks(teams=[{**_TEAM, "users": "ada"}]),
    _aks(teams={"blue": _TEAM}),
)
