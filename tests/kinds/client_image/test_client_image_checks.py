"""What the doctor says of images that are to be built."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kinds.checking import GOOD, WARNING, checks_on, one

from bfinfra.kinds.image.client_image.kind import ClientImage


@pytest.mark.parametrize(
    ("tool", "health", "words"),
    [
        (None, WARNING, "install docker or podman"),
        (SimpleNamespace(name="podman"), GOOD, "podman builds them"),
    ],
)
def test_what_builds_images(sandbox, tool, health, words):
    with checks_on(
        sandbox,
        "client_image",
        images=SimpleNamespace(tool=lambda: (tool, "neither docker nor podman is here")),
    ) as context:
        found = one(ClientImage.checks["local.tools"](context))
    assert found[0] is health
    assert words in found[1]
