"""The emulated Azure and the review replace a resource for the same inputs."""

import pytest

from emulator.azure import schema
from emulator.azure.services import KINDS
from review import immutable
from review.replacement import azure_type
from runner.properties import contains, parse


@pytest.mark.parametrize("token", sorted(KINDS))
def test_the_emulated_azure_replaces_for_the_inputs_that_the_review_names(token: str) -> None:
    kind = KINDS[token]
    forcing = {parse(each.replace("[]", "[*]")) for each in (*kind.parameters, *kind.replaces)}
    # The review names only the topmost of nested paths.
    forcing = {each for each in forcing if not any(contains(o, each) for o in forcing if o != each)}
    named = azure_type(token)
    assert named is not None
    for top in schema.resource(token).inputs:
        assert set(immutable.of_azure(named, top)) == {each for each in forcing if each[0] == top}, top
