"""Each field changed by itself: afterwards the world is another one and the plan is empty, or the plan
refuses it. Nothing is noted as applied that was not done.
"""

from __future__ import annotations

import pytest
from kinds import changed_fields
from kinds.lifecycle import from_tests

import bfinfra.kinds as registry

VCENTER = registry.names("vcenter")


@pytest.mark.thorough("port_group")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.peers) if kind in from_tests("SLOW_TO_CHANGE") else kind
        for kind in from_tests("CHANGED_FIELDS")
    ],
)
def test_what_is_noted_as_applied_is_seen_in_the_world(kind, sandbox, tmp_path):
    rows = [
        changed_fields.row(kind, *each)
        for each in changed_fields.tried(kind, sandbox, tmp_path / "site.yaml")
    ]
    if kind in VCENTER:
        page = changed_fields.PAGE.read_text().splitlines()
        assert rows == [line for line in page if line.startswith(f"| `{kind}` |")]


@pytest.mark.parametrize("kind", VCENTER)
def test_no_field_of_a_kind_in_vcenter_is_left_out(kind):
    fields = registry.kind(kind).Spec.model_fields.keys() - {"protect", "after"}
    named = {field.partition(".")[2] for field in changed_fields.HOW if field.startswith(f"{kind}.")}
    changed = {field for each in changed_fields.fields_of(kind) for field in each}
    assert fields == changed | named
    assert changed & named == set()
