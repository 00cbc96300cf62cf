"""Each field changed by itself: afterwards the world is another one and the plan is empty, or the plan
refuses it. Nothing is noted as applied that was not done.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, from_tests, made, of_test, plan, world

import bfinfra
from bfinfra.model.errors import BfinfraError

NOTES = re.compile(r'bfinfra[^"\\\n]*')
COUNTED = re.compile(r"[vV]ersion|modified|ConfigId|[Tt]ime")


def bare(sandbox: Any) -> str:
    """The world without notes of bfinfra, counters and times."""
    return NOTES.sub("", "\n".join(line for line in world(sandbox).splitlines() if not COUNTED.search(line)))


@pytest.mark.thorough("port_group")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.peers) if kind in from_tests("SLOW_TO_CHANGE") else kind
        for kind in from_tests("CHANGED_FIELDS")
    ],
)
def test_what_is_noted_as_applied_is_seen_in_the_world(kind, sandbox, tmp_path):
    text = re.sub(r"(0x[0-9a-f]{4})", r'"\1"', EXAMPLES[kind].read_text())
    example, path = yaml.safe_load(text), tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(example))
    assert made(apply(path, sandbox))
    (name,) = example[kind]
    for fields in of_test(kind, "CHANGED_FIELDS"):
        site, before = copy.deepcopy(example), bare(sandbox)
        site[kind][name] |= {
            field: {**site[kind][name].get(field, {}), **value} if field == "properties" else value
            for field, value in fields.items()
        }
        path.write_text(yaml.safe_dump(site))
        bfinfra.load(path, sandbox=sandbox)  # valid, whatever the plan says
        try:
            done = apply(path, sandbox)
        except BfinfraError as refused:
            assert refused.problems
            assert bare(sandbox) == before
            continue
        assert made(done), (fields, endings(done))
        assert plan(path, sandbox).pending == (), fields
        assert drift(path, sandbox).found == (), fields
        if "done" in endings(done).values():
            assert bare(sandbox) != before, f"{fields}: noted as applied, and nothing was done"
