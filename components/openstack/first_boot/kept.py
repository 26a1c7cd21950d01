"""Keep a VM's user data and image. A new version of the program or a renewed image does not replace the VM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi import dynamic

from components.openstack.first_boot.arguments import FirstBootArgs
from components.openstack.first_boot.user_data import revision, user_data

REPLACING: Final = "asked"
"""Input with the requested values. A change of it creates a new VM."""
_DEFAULTS: Final = "defaults"
"""Input with the names of the requested values that are this version's defaults."""
_OTHER_KEYS: Final = "other keys"


@dataclass(frozen=True, kw_only=True)
class KeptUserDataArgs:
    """The arguments of the VM's user data.

    first_boot: of the VM.
    others: other values whose change creates a new VM, such as its image, by the name of their setting.
    defaults: names of values that the settings do not have. A VM keeps its own if a newer version has other defaults.
    image_id: current ID of that image's name.
    renewal: setting that requests a new VM with the newest first boot.
    """

    first_boot: FirstBootArgs
    image_id: pulumi.Input[str]
    renewal: str
    others: Mapping[str, str] = field(default_factory=dict)
    defaults: Sequence[str] = ()


class _Keeping(dynamic.ResourceProvider):
    """Keeps the values of its creation until others are requested."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(str(props["revision"]), props)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        asked = {name: text for name, text in _each(_news[REPLACING]).items() if name not in _news.get(_DEFAULTS, ())}
        replaces = [REPLACING] if _asks_otherwise(_each(_olds.get(REPLACING) or {}), asked) else []
        return dynamic.DiffResult(changes=bool(replaces), replaces=replaces)


class KeptUserData(dynamic.Resource, name="UserData", module="mlbatch"):
    """A VM's user data and image: the newest for a new VM, otherwise those of the VM's first boot.

    An image may be renewed under its name and the old one withdrawn. A new VM must not boot the old one.

    The engine's option `ignoreChanges` would not work. If another change replaced the VM, the new VM would get the old
    user data (pulumi/pulumi, pull request 2657: the engine copies the old input).

    text: a secret. versions: what the VM was created with, such as `gpu.driver`. Warns if there are newer programs than
    the VM's.
    """

    text: pulumi.Output[str]
    image_id: pulumi.Output[str]
    asked: pulumi.Output[Mapping[str, str]]
    revision: pulumi.Output[str]
    """Digest of the programs and of the versions that they install."""

    def __init__(self, name: str, args: KeptUserDataArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        newest = revision(args.first_boot)
        inputs = {
            "text": user_data(args.first_boot),
            "image_id": args.image_id,
            "revision": newest,
            REPLACING: {**_asked(args)},
            _DEFAULTS: [*args.defaults],
        }
        secret = pulumi.ResourceOptions(additional_secret_outputs=["text"])
        super().__init__(_Keeping(), name, inputs, pulumi.ResourceOptions.merge(opts, secret))
        self.revision.apply(lambda kept: _warn(args.renewal) if kept != newest else None)
        self.versions = self.asked.apply(_each)


def _asks_otherwise(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return whether other values are requested.

    Values that an older version of this program did not record do not count, and defaults are not in `new`.
    """
    return any(name in new and new[name] != asked for name, asked in {_OTHER_KEYS: "", **old}.items())


def _each(asked: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values with those of the recorded text `gpu` one by one: gpu.driver, gpu.cuda and gpu.toolkit."""
    parts = [part.split(" ") for part in asked.get("gpu", "").split(", ") if part]
    return {**asked, "gpu": str(bool(parts)), **{f"gpu.{what.lower()}": version for what, version in parts}}


def _asked(args: KeptUserDataArgs) -> Mapping[str, pulumi.Input[str]]:
    first = args.first_boot
    gpu, kind = first.gpu, first.kind
    return {
        "user": first.user,
        "key": first.authorized_key,
        "host key": first.host_key.public,
        "volume": first.volume_id,
        "gpu": f"driver {gpu.driver}, CUDA {gpu.cuda}, toolkit {gpu.toolkit}" if gpu else "",
        "cluster": f"{kind.node_image}, port {kind.api_port}" if kind else "",
        _OTHER_KEYS: "\n".join(first.other_keys),
        **args.others,
    }


def _warn(renewal: str) -> None:
    pulumi.log.warn(
        "this version has another first boot than the VM had, and the VM stays as it is. Raise "
        f"{renewal} for a new one: its address, its volume and the cluster on that stay, what is on its own disk goes"
    )
