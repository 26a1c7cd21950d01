"""Read digests of images and charts' archives from registries.

Requests are anonymous, like those of all clients (opencontainers/distribution-spec, spec.md; distribution/distribution,
docs/content/spec/auth/token.md).
"""

import hashlib
import json
import re
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from components.images import Reference

_TIMEOUT: Final = 30.0
"""Seconds for each response of a registry."""
_MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_CHART: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Media type of a chart's archive (helm/helm, pkg/registry/constants.go)."""
_DOCKER_HUB: Final = {"docker.io": "registry-1.docker.io"}
"""Host for the requests to a registry, by the registry's name (distribution/reference)."""
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')


class RegistryError(OSError):
    """A registry does not serve what was requested. The message has the request and the reason."""


def image_digest(reference: str) -> str:
    """Return the current digest of a reference's tag, for all platforms together. Raises RegistryError."""
    return f"sha256:{hashlib.sha256(_manifest(Reference.parse(reference))).hexdigest()}"


def require(reference: str) -> None:
    """Request the headers of an image's manifest.

    Docker Hub counts no pull for them. Raises RegistryError.
    """
    _manifest(Reference.parse(reference).located(), "HEAD")


def chart_digest(repository: str, name: str, version: str) -> str:
    """Return the sha256 of a chart's archive in an OCI registry, hexadecimal. Raises RegistryError.

    A `+` of a version is `_` in its tag (helm/helm, pkg/registry/util.go).
    """
    path = f"{repository.removeprefix('oci://')}/{name}"
    manifest = json.loads(_manifest(Reference(repository=path, tag=version.replace("+", "_"))))
    found = [layer["digest"] for layer in manifest.get("layers", ()) if layer.get("mediaType") == _CHART]
    if len(found) != 1:
        raise RegistryError(f"{path}:{version} is no chart: its manifest has {len(found)} archives of one")
    return str(found[0]).removeprefix("sha256:")


def _manifest(reference: Reference, method: str = "GET") -> bytes:
    registry, _, path = reference.repository.partition("/")
    version = (reference.digest if method == "HEAD" else None) or reference.tag or "latest"
    url = f"https://{_DOCKER_HUB.get(registry, registry)}/v2/{path}/manifests/{version}"
    headers = {"Accept": ", ".join(_MANIFESTS)}
    try:
        try:
            return _get(url, headers, method)
        except HTTPError as error:
            if error.code != 401:
                raise
            token = _token(error.headers.get("WWW-Authenticate", ""))
            return _get(url, {**headers, "Authorization": f"Bearer {token}"}, method)
    except (OSError, ValueError) as error:
        raise RegistryError(f"{reference} cannot be asked for: {error}") from error


def _token(challenge: str) -> str:
    """Return a token for an anonymous user. Raises ValueError without one."""
    parameters = dict(_PARAMETER.findall(challenge))
    realm = parameters.pop("realm", "")
    if not challenge.lower().startswith("bearer ") or not realm.startswith("https://"):
        raise ValueError(f"the registry wants to be signed in to by {challenge or 'something it does not say'}")
    answer: dict[str, Any] = json.loads(_get(f"{realm}?{urlencode(parameters)}", {}))
    if not (token := answer.get("token") or answer.get("access_token")):
        raise ValueError(f"{realm} returned no token")
    return str(token)


def _get(url: str, headers: dict[str, str], method: str = "GET") -> bytes:
    request = Request(url, headers=headers, method=method)  # noqa: S310 - https alone gets here
    with urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
        content: bytes = answer.read()
        return content
