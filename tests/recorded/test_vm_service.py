"""Machines of the VM Service and their services, by vm-operator's own definitions, with unknown fields forbidden."""

from __future__ import annotations

import pytest
from recorded.conftest import Held
from recorded.test_definitions import judge, schema
from recorded.vm_service import IN, PLURALS, definition, objects

from bfinfra.kinds.supervisor.service_vm.manifest import VERSIONS


def test_every_version_that_bfinfra_writes_has_a_definition() -> None:
    assert set(IN) == set(VERSIONS)


@pytest.mark.parametrize("version", IN)
def test_machines_and_services(version: str, held: Held) -> None:
    wrong: list[str] = []
    number = 0
    for plural in PLURALS:
        found = schema(definition(plural, version), version)
        for name, obj in objects(version):
            if f"{obj['kind'].lower()}s" == plural:
                number += 1
                wrong += [f"{name}: {each}" for each in judge(found, obj)]
    held(f"vm-operator: {version}", wrong, number)
