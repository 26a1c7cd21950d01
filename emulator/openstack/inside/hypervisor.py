"""Nova's fake driver, which knows after a restart which servers there are, as a hypervisor does."""

from __future__ import annotations

from nova import context, objects
from nova.compute import power_state
from nova.virt import fake

NAME = "FakeDriverThatRemembers"


class FakeDriverThatRemembers(fake.FakeDriverWithoutFakeNodes):
    """The driver without what it forgets: it could neither stop nor start a server from before its process began."""

    def init_host(self, host: str) -> None:
        """Take from Nova's database the servers that were made on this host."""
        super().init_host(host)
        for instance in objects.InstanceList.get_by_host(context.get_admin_context(), host, expected_attrs=[]):
            if instance.power_state in (power_state.RUNNING, power_state.SHUTDOWN, power_state.PAUSED):
                known = fake.FakeInstance(instance.name, instance.power_state, instance.uuid)
                self.instances[instance.uuid] = known


def install() -> None:
    """Let Nova find the driver, which it looks for beside its own (`nova/virt/driver.py`, load_compute_driver)."""
    setattr(fake, NAME, FakeDriverThatRemembers)
