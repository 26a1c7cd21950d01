"""Fixtures: an empty subscription for each test, and one with a managed cluster."""

from pathlib import Path

import pytest

from tests.emulator.azure.subscription import Subscription


@pytest.fixture
def azure(tmp_path: Path) -> Subscription:
    return Subscription(tmp_path)


@pytest.fixture
def aks(azure: Subscription) -> Subscription:
    """A registered feature, a resource group and a managed cluster with two system nodes."""
    azure.group()
    azure.register()
    azure.clock.sleep(60)
    azure.propagate()
    azure.managed_cluster()
    return azure
