"""An OpenStack and its services, reached through openstacksdk.

Authentication is the official provider's (terraform-provider-openstack v3.4.0, openstack/provider.go): an input of the
provider resource, else its variable of the environment, and no request before the first one that is needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

import openstack
from keystoneauth1 import exceptions as keystone
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.identity import BaseIdentityPlugin
from openstack import exceptions
from openstack.connection import Connection
from openstack.proxy import Proxy

from emulator.openstack_provider.errors import ApiError
from emulator.plugin.errors import OutcomeUnknownError, ProviderError

VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "authUrl": ("OS_AUTH_URL",),
    "cloud": ("OS_CLOUD",),
    "region": ("OS_REGION_NAME",),
    "userName": ("OS_USERNAME",),
    "userId": ("OS_USER_ID",),
    "password": ("OS_PASSWORD",),
    "token": ("OS_TOKEN", "OS_AUTH_TOKEN"),
    "applicationCredentialId": ("OS_APPLICATION_CREDENTIAL_ID",),
    "applicationCredentialName": ("OS_APPLICATION_CREDENTIAL_NAME",),
    "applicationCredentialSecret": ("OS_APPLICATION_CREDENTIAL_SECRET",),
    "tenantId": ("OS_TENANT_ID", "OS_PROJECT_ID"),
    "tenantName": ("OS_TENANT_NAME", "OS_PROJECT_NAME"),
    "userDomainName": ("OS_USER_DOMAIN_NAME",),
    "userDomainId": ("OS_USER_DOMAIN_ID",),
    "projectDomainName": ("OS_PROJECT_DOMAIN_NAME",),
    "projectDomainId": ("OS_PROJECT_DOMAIN_ID",),
    "domainId": ("OS_DOMAIN_ID",),
    "domainName": ("OS_DOMAIN_NAME",),
    "defaultDomain": ("OS_DEFAULT_DOMAIN",),
    "insecure": ("OS_INSECURE",),
    "endpointType": ("OS_ENDPOINT_TYPE",),
    "cacertFile": ("OS_CACERT",),
    "cert": ("OS_CERT",),
    "key": ("OS_KEY",),
    "delayedAuth": ("OS_DELAYED_AUTH",),
}
"""The inputs of a provider resource that are understood, with the variables that stand for them."""

IGNORED: Final = frozenset({"allowReauth", "disableNoCacheHeader", "enableLogging", "maxRetries", "version"})
"""Inputs that change nothing of what happens here; of the first, openstacksdk always signs in again."""

_AUTH: Final[Mapping[str, str]] = {
    "authUrl": "auth_url",
    "userName": "username",
    "userId": "user_id",
    "password": "password",
    "token": "token",
    "tenantId": "project_id",
    "tenantName": "project_name",
    "userDomainName": "user_domain_name",
    "userDomainId": "user_domain_id",
    "projectDomainName": "project_domain_name",
    "projectDomainId": "project_domain_id",
    "domainId": "domain_id",
    "domainName": "domain_name",
}
_APPLICATION: Final[Mapping[str, str]] = {
    "authUrl": "auth_url",
    "applicationCredentialId": "application_credential_id",
    "applicationCredentialName": "application_credential_name",
    "applicationCredentialSecret": "application_credential_secret",
    "userName": "username",
    "userId": "user_id",
    "userDomainName": "user_domain_name",
    "userDomainId": "user_domain_id",
}


def settings(inputs: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the inputs of a provider resource, completed from the environment."""
    found = dict(inputs)
    for name, variables in VARIABLES.items():
        if found.get(name) in (None, ""):
            value = next((environment[each] for each in variables if environment.get(each)), None)
            if value is not None:
                found[name] = value
    return found


class Service:
    """One API of an OpenStack. Requests raise ApiError for what it refuses."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def get(self, path: str, version: str | None = None, **query: Any) -> Any:
        """Return what is at a path. version: the microversion."""
        return self._request("GET", path, version, params={key: value for key, value in query.items() if value})

    def find(self, path: str, version: str | None = None) -> Any:
        """Return what is at a path, None where nothing is."""
        try:
            return self.get(path, version)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def post(self, path: str, body: Any, version: str | None = None) -> Any:
        """Create or act."""
        return self._request("POST", path, version, json=body)

    def put(self, path: str, body: Any, version: str | None = None) -> Any:
        """Update."""
        return self._request("PUT", path, version, json=body)

    def delete(self, path: str, version: str | None = None) -> None:
        """Delete; what is gone already is a success."""
        try:
            self._request("DELETE", path, version)
        except ApiError as error:
            if error.status != 404:
                raise

    def _request(self, method: str, path: str, version: str | None, **arguments: Any) -> Any:
        what = f"{method} {self._proxy.service_type}{path}"
        try:
            response = self._proxy.request(path, method, microversion=version, raise_exc=False, **arguments)
            exceptions.raise_from_response(response)
        except exceptions.HttpException as error:
            raise ApiError(what, error.status_code or 0, error.details or error.message or "no message") from None
        except (keystone.ConnectFailure, keystone.ConnectTimeout) as error:
            kind = ProviderError if method == "GET" else OutcomeUnknownError
            raise kind(f"{what}: no answer: {error}") from None
        except (keystone.ClientException, exceptions.SDKException) as error:
            raise ProviderError(_explained(error)) from None
        return response.json() if response.content else None


class Cloud:
    """An OpenStack as a provider resource names it. Raises ProviderError where it names none.

    given: the completed inputs of the provider resource (`settings`).
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        if not given.get("authUrl") and not given.get("cloud"):
            raise ProviderError(
                "one of 'authUrl' or 'cloud' must be specified: source the openrc file of an application credential, "
                "or set OS_AUTH_URL or OS_CLOUD"
            )
        self.given = given
        self._connections: dict[str, Connection] = {}
        self._lock = threading.Lock()
        if str(given.get("delayedAuth", "true")).lower() in ("false", "0"):
            self.connection("")

    @property
    def region(self) -> str:
        """The region for resources that name none."""
        return str(self.given.get("region") or "")

    def service(self, name: str, region: str) -> Service:
        """Return an API: compute, network, block_storage, image or identity."""
        try:
            return Service(getattr(self.connection(region), name))
        except (keystone.ClientException, exceptions.SDKException) as error:
            raise ProviderError(_explained(error)) from None

    def connection(self, region: str) -> Connection:
        """Return the signed-in connection of a region."""
        if not any(self.given.get(name) for name in ("cloud", "applicationCredentialSecret", "token", "password")):
            raise ProviderError(
                f"there is no credential for {self.given['authUrl']}: source the openrc of an application credential"
            )
        with self._lock:
            if region not in self._connections:
                try:
                    connection = openstack.connect(**self._arguments(region))
                    connection.session.get_token()
                except (keystone.ClientException, exceptions.SDKException, ValueError) as error:
                    raise ProviderError(_explained(error)) from None
                self._connections[region] = connection
            return self._connections[region]

    def access(self, region: str) -> AccessInfoV3:
        """Return who is signed in, in which scope."""
        session = self.connection(region).session
        auth = session.auth
        if not isinstance(auth, BaseIdentityPlugin):
            raise ProviderError("the OpenStack is used without an identity service, which knows who is signed in")
        access = auth.get_access(session)
        if not isinstance(access, AccessInfoV3):
            raise ProviderError("the OpenStack has the Identity API v2.0; v3 is expected")
        return access

    def _arguments(self, region: str) -> dict[str, Any]:
        given = self.given
        application = bool(given.get("applicationCredentialSecret"))
        names = _APPLICATION if application else _AUTH
        auth = {name: given[key] for key, name in names.items() if given.get(key)}
        if not given.get("cloud"):
            kind = "v3applicationcredential" if application else "v3token" if given.get("token") else "password"
            found = {"load_yaml_config": False, "load_envvars": False, "auth_type": kind}
        else:
            found = {"cloud": given["cloud"], "load_envvars": False}
        default = str(given.get("defaultDomain") or "default")
        if not application and not given.get("cloud"):
            for holder in ("user", "project"):
                if f"{holder}_domain_name" not in auth:
                    auth.setdefault(f"{holder}_domain_id", default)
        overrides = {
            f"{service.replace('-', '_')}_endpoint_override": url
            for service, url in (given.get("endpointOverrides") or {}).items()
        }
        return {
            **found,
            **overrides,
            "auth": auth,
            "region_name": region or self.region or None,
            "interface": str(given.get("endpointType") or "public").removesuffix("URL"),
            "verify": str(given.get("insecure", "false")).lower() not in ("true", "1"),
            "cacert": given.get("cacertFile"),
            "cert": given.get("cert"),
            "key": given.get("key"),
            "app_name": "mlbatch",
        }


def _explained(error: Exception) -> str:
    hint = ""
    if isinstance(error, keystone.Unauthorized):
        hint = "; the credential is wrong, expired or revoked: make a new application credential and source its openrc"
    elif isinstance(error, keystone.MissingRequiredOptions | keystone.MissingAuthPlugin):
        hint = "; source the openrc file of an application credential"
    elif isinstance(error, keystone.ConnectFailure):
        hint = "; is OS_AUTH_URL right, and does this machine reach it?"
    return f"cannot use the OpenStack: {error}{hint}"
