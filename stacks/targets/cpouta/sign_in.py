"""Signs in to OpenStack like the provider for OpenStack, which reads the variables in another way than the SDK.

The provider takes the first of token, password and application credential, and ignores OS_AUTH_TYPE and OS_INTERFACE
(terraform-provider-openstack/utils, auth/config.go; gophercloud/utils, openstack/clientconfig/requests.go, v3auth;
gophercloud, auth_options.go, ToTokenV3CreateMap).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from stacks.config.errors import listed

if TYPE_CHECKING:
    from openstack.connection import Connection

SECONDS: Final = 30
"""Seconds that a service may take for each answer."""
OPENRC: Final = (
    "create an application credential (cPouta's dashboard, Identity, Application Credentials), download its openrc "
    "file, and `source` it in the shell that runs Pulumi; OS_CLOUD with clouds.yaml works too"
)
_DOMAIN: Final = "default"
"""The provider's default domain of users and projects."""
_TOKENS: Final = ("token", "auth_token")
_CREDENTIAL: Final = ("application_credential_id", "application_credential_name", "application_credential_secret")
_USER: Final = ("username", "user_id", "user_domain_id", "user_domain_name")
_PROJECT: Final = ("project_id", "project_name", "tenant_id", "tenant_name")
_SCOPE: Final = (*_PROJECT, "project_domain_id", "project_domain_name", "domain_id", "domain_name")
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "v3token": ("token", *_SCOPE),
    "v3password": ("password", *_USER, *_SCOPE),
    "v3applicationcredential": _CREDENTIAL,
}
"""Variables of each method, without OS_ and in lower case. Keystone refuses a scope beside an application credential
(keystone, auth/plugins/application_credential.py), and the provider sends none."""
_IGNORED: Final = ("auth_type", "interface", "endpoint_type", "client_secure_file")
_ALL: Final = ("auth_url", *_TOKENS, "password", *_CREDENTIAL, *_USER, *_SCOPE, "default_domain", "system_scope")


class ProjectError(Exception):
    """The project did not answer. message: the reason. hint: the fix. Neither shows a credential."""

    def __init__(self, message: str, hint: str = OPENRC) -> None:
        super().__init__(message)
        self.hint = hint


def connect(environment: Mapping[str, str]) -> Connection:
    """Sign in with the OS_* variables.

    Raises ProjectError if there are none, or if they name several identities, and the exceptions of keystoneauth1 and
    openstacksdk.
    """
    from keystoneauth1.exceptions import NotFound
    from openstack.config import OpenStackConfig, loader
    from openstack.connection import Connection

    given = {
        key.removeprefix("OS_").lower(): text for key, text in environment.items() if key.startswith("OS_") and text
    }
    if not given.keys() & {"cloud", "auth_url"}:
        raise ProjectError("no credentials: neither OS_AUTH_URL nor OS_CLOUD is set")
    _check(given)
    cloud = given.pop("cloud", None)
    # The SDK reads it only from its own environment, together with all others. OS_CLIENT_SECURE_FILE is ignored,
    # because the official provider does not read it (gophercloud/utils, openstack/clientconfig/utils.go).
    files = given.pop("client_config_file", None)
    others = {key: text for key, text in given.items() if key not in (*_ALL, *_IGNORED)}
    config = OpenStackConfig(
        load_envvars=False,
        load_yaml_config=cloud is not None,
        config_files=[*filter(None, [files]), *loader.CONFIG_FILES],
    )
    auth = _auth(given) if cloud is None else (config.cloud_config["clouds"].get(cloud) or {}).get("auth") or {}
    options: dict[str, Any] = {**others, "auth_type": _method(auth), "interface": given.get("endpoint_type", "public")}
    if cloud is None:
        options["auth"] = auth
    connection = Connection(config=config.get_one(cloud=cloud, api_timeout=SECONDS, **options))
    try:
        connection.session.get_token()  # its error has the reason, unlike that of `authorize`
    except NotFound:
        if _method(auth) != "v3token":
            raise
        raise ProjectError("cannot sign in: the token is wrong or expired") from None
    return connection


def _check(given: Mapping[str, str]) -> None:
    """Raise ProjectError if it is unclear which variables sign in."""
    if "cloud" in given and (besides := _names(given, _ALL)):
        raise ProjectError(
            f"OS_CLOUD and {listed(besides)} are set, so it is unclear which of them signs in",
            f"`unset OS_CLOUD`, or `unset {' '.join(besides)}`, in the shell that runs Pulumi",
        )
    if _names(given, _CREDENTIAL) and (besides := _names(given, (*_TOKENS, "password", *_PROJECT))):
        raise ProjectError(
            f"{listed(besides)} and an application credential are set, so it is unclear which of them signs in",
            f"`unset {' '.join(besides)}` in the shell that runs Pulumi: the credential has its own project",
        )


def _names(given: Mapping[str, str], wanted: Iterable[str]) -> list[str]:
    return [f"OS_{name.upper()}" for name in wanted if name in given]


def _method(auth: Mapping[str, str]) -> str:
    """Return the method that the provider takes."""
    if auth.keys() & {*_TOKENS}:
        return "v3token"
    return "v3password" if "password" in auth else "v3applicationcredential"


def _auth(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the method of the variables takes, with the provider's default domains."""
    method = _method(given)
    taken = (*_METHODS[method], *(_USER if "application_credential_name" in given else ()))
    found = {key: text for key, text in given.items() if key in ("auth_url", *taken)}
    if method == "v3token":
        return {**found, "token": given.get("token") or given["auth_token"], **_domain(given, "project")}
    return {**found, **_domain(given, "user"), **_domain(given, "project")} if method == "v3password" else found


def _domain(given: Mapping[str, str], of: str) -> Mapping[str, str]:
    has = any(f"{each}domain_{part}" in given for each in ("", f"{of}_") for part in ("id", "name"))
    return {} if has else {f"{of}_domain_id": given.get("default_domain", _DOMAIN)}
