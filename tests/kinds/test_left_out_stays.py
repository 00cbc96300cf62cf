"""What the file doesn't say stays as it is: on every kind of object, whatever else of it is changed, and when
it is adopted. What the plan shows is all that is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.by_hand import ByHand, administrator, moved, of_kind
from kinds.lifecycle import apply, endings, made, plan

import bfinfra.kinds as registry
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key

KINDS = tuple(kind for kind in registry.names() if of_kind(kind) is not None)
ADOPTED = tuple(kind for kind in KINDS if (found := of_kind(kind)) is not None and found.unmark)


def hand_of(kind: str) -> ByHand:
    found = of_kind(kind)
    assert found is not None
    return found


def written(path: Path, kind: str, fields: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(hand_of(kind).site(kind, fields)))
    return path


def shown(found: Plan) -> set[str]:
    return {change.field for item in found.items for step in item.steps for change in step.changes}


@pytest.mark.parametrize("kind", KINDS)
def test_another_field_changes_and_what_was_set_by_hand_stays(kind, sandbox, tmp_path):
    hand, path = hand_of(kind), written(tmp_path / "site.yaml", kind, hand_of(kind).said)
    assert made(apply(path, sandbox))
    fresh = sandbox.world()
    with administrator(path, sandbox) as vcenter:
        hand.hand(vcenter)
    before = sandbox.world()
    assert moved(fresh, before), "nothing was set by hand"
    assert shown(plan(path, sandbox)) == set()

    written(path, kind, hand.changed)
    assert shown(plan(path, sandbox)) == hand.shown
    done = apply(path, sandbox)
    assert made(done), endings(done)
    others = moved(before, sandbox.world())
    assert others
    assert {at: each for at, each in others.items() if not re.fullmatch(hand.moved, at)} == {}
    assert shown(plan(path, sandbox)) == set()


@pytest.mark.parametrize("kind", ADOPTED)
def test_it_is_adopted_by_its_mark_alone(kind, sandbox, tmp_path):
    hand, path = hand_of(kind), written(tmp_path / "site.yaml", kind, hand_of(kind).said)
    assert made(apply(path, sandbox))
    with administrator(path, sandbox) as vcenter:
        hand.hand(vcenter)
        assert hand.unmark is not None
        hand.unmark(vcenter)
    before, key = sandbox.world(), Key(kind, hand.object)

    assert shown(plan(path, sandbox, adopt=frozenset({key}), adopt_only=True)) == {"mark"}
    done = apply(path, sandbox, adopt=frozenset({key}))
    assert made(done), endings(done)
    assert moved(before, sandbox.world()) == {}
    assert not plan(path, sandbox).pending
