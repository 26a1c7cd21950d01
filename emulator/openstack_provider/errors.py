"""What can go wrong with an OpenStack."""

from __future__ import annotations

from emulator.plugin.errors import ProviderError


class NotServedError(ProviderError):
    """A resource type or a function that this provider does not serve."""

    def __init__(self, token: str, served: str) -> None:
        super().__init__(
            f"the local provider for OpenStack does not serve {token}; it serves {served}. The official plugin "
            "resource-openstack serves all of them"
        )


class ApiError(ProviderError):
    """A request that a service has refused. status: of the HTTP response."""

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request}: {status}: {message}")
        self.status = status
        self.message = message
