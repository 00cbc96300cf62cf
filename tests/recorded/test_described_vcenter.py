"""A recorded vCenter 8.0.1 is described as a site; to adopt that changes no field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recorded.conftest import Held
from recorded.test_vcenter_of_vmc import SOURCE, USER, saved, server, site  # noqa: F401 - fixtures

from bfinfra import app
from bfinfra.app import init
from bfinfra.model.compare import UNFINISHED


def test_it_is_described_and_to_adopt_it_changes_no_field(
    site: Any,  # noqa: F811 - the fixture
    tmp_path: Path,
    held: Held,
) -> None:
    vcenter = site().vcenter
    settings = vcenter.model_dump(mode="json", exclude_defaults=True)
    found = init.described(init.empty("mine", settings, tmp_path), settings)
    path = tmp_path / "described.yaml"
    path.write_text(found.text)
    described = app.load(path)
    kinds = {key.kind for key in described.resources}
    assert {"distributed_switch", "port_group", "resource_pool", "virtual_machine"} <= kinds, found.text
    plan = app.plan(described, adopt=frozenset(described.resources))
    wrong = [str(each) for each in plan.problems]
    wrong += [
        f"{item.key}: {change.field}"
        for item in plan.items
        for change in item.changes
        if change.field != UNFINISHED
    ]
    held(f"{SOURCE}: init and adopt", wrong, len(described.resources))
