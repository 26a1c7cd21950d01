"""Nova's fake driver, which after a restart still has the servers of its host, like a hypervisor."""

from __future__ import annotations

from nova import context, objects
from nova.compute import power_state
from nova.virt import fake

NAME = "FakeDriverThatRemembers"


class FakeDriverThatRemembers(fake.FakeDriverWithoutFakeNodes):
    """The fake driver with memory. Without it, servers created before a restart can neither be stopped nor started."""

    def init_host(self, host: str) -> None:
        """Load the servers of this host from Nova's database."""
        super().init_host(host)
        for instance in objects.InstanceList.get_by_host(context.get_admin_context(), host, expected_attrs=[]):
            if instance.power_state in (power_state.RUNNING, power_state.SHUTDOWN, power_state.PAUSED):
                known = fake.FakeInstance(instance.name, instance.power_state, instance.uuid)
                self.instances[instance.uuid] = known


def install() -> None:
    """Add the driver to Nova's package, where Nova looks for it (`nova/virt/driver.py`, load_compute_driver)."""
    setattr(fake, NAME, FakeDriverThatRemembers)
