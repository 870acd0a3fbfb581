"""A sandbox, where this system can have one."""

import pytest

from jerp.bridge.sandbox import (
    Sandbox,
)
from jerp.errors import SandboxError


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as made:
        try:
            made.protections  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")
        yield made
