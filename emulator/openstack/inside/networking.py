"""Neutron without agents: these classes report what agents would."""

from __future__ import annotations

from typing import Any

from neutron.services.l3_router import l3_router_plugin
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class Everywhere(api.MechanismDriver):
    """Binds each port on the host that requests it, like the agent of that host."""

    def initialize(self) -> None:
        """Accept the call."""

    def bind_port(self, context: Any) -> None:
        """Bind to the first segment; the port is then ACTIVE."""
        segment = context.segments_to_bind[0]
        details = {portbindings.CAP_PORT_FILTER: True}
        context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, details, status=constants.PORT_STATUS_ACTIVE)


class Routers(l3_router_plugin.L3RouterPlugin):
    """Routers and floating IPs, with the status from an agent."""

    def create_floatingip(self, context: Any, floatingip: Any, *arguments: Any, **options: Any) -> Any:
        """Create a floating IP and set its status."""
        return self._report(context, super().create_floatingip(context, floatingip, *arguments, **options))

    def update_floatingip(self, context: Any, id: str, floatingip: Any) -> Any:  # noqa: A002 (Neutron's own name)
        """Update a floating IP and set its status."""
        return self._report(context, super().update_floatingip(context, id, floatingip))

    def _report(self, context: Any, address: Any) -> Any:
        served = constants.FLOATINGIP_STATUS_ACTIVE if address.get("port_id") else constants.FLOATINGIP_STATUS_DOWN
        self.update_floatingip_status(context.elevated(), address["id"], served)
        address["status"] = served
        return address
