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

GROUPS = ("vcenter", "supervisor")
EACH = [(kind, hand) for kind in registry.names() for hand in of_kind(kind)]
ADOPTED = [(kind, hand) for kind, hand in EACH if hand.unmark is not None]
BESIDES = {
    **dict.fromkeys(("bitfusion_server", "bitfusion_vm"), "of a VM it writes what differs: virtual_machine"),
    "gpu_host": "it has no field that can be left out: cards that it doesn't name are others' cards",
    "host_image": "an image is one statement, and its other components stay: tests/kinds/host_image",
    "registry": "it can be made and deleted, and not changed",
    "supervisor": "it writes the fields that the site sets: tests/kinds/supervisor",
    **dict.fromkeys(
        ("service_vm", "tanzu_cluster", "vks_addon", "vks_cluster"), "an object of Kubernetes: ownership"
    ),
}
"""Kinds of vCenter and its supervisors of which nothing is set by hand here, and why."""


def of(hands: list[tuple[str, ByHand]]) -> pytest.MarkDecorator:
    ids = [f"{kind}-{'-'.join(sorted(hand.shown))}" for kind, hand in hands]
    return pytest.mark.parametrize(("kind", "hand"), hands, ids=ids)


def written(path: Path, site: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(site))
    return path


def shown(found: Plan) -> set[str]:
    return {change.field for item in found.items for step in item.steps for change in step.changes}


def test_every_kind_of_vcenter_and_its_supervisors_is_here():
    assert {*registry.names(*GROUPS)} == {kind for kind, _ in EACH} | BESIDES.keys()


@pytest.mark.thorough("supervisor_namespace-access", "vm_class-cpus", "distributed_switch-uplinks")
@of(EACH)
def test_another_field_changes_and_what_was_set_by_hand_stays(kind, hand, sandbox, tmp_path):
    path = written(tmp_path / "site.yaml", hand.site(kind, hand.said))
    assert made(apply(path, sandbox))
    fresh = sandbox.world()
    with administrator(path, sandbox) as vcenter:
        hand.hand(vcenter)
    before = sandbox.world()
    assert moved(fresh, before), "nothing was set by hand"
    assert shown(plan(path, sandbox)) == set()

    written(path, hand.site(kind, hand.changed))
    assert shown(plan(path, sandbox)) == hand.shown
    done = apply(path, sandbox)
    assert made(done), endings(done)
    others = moved(before, sandbox.world())
    assert others
    assert {at: each for at, each in others.items() if not re.fullmatch(hand.moved, at)} == {}
    assert shown(plan(path, sandbox)) == set()


@pytest.mark.thorough("supervisor_namespace-limits.cpu", "port_group-ports")
@of(ADOPTED)
def test_it_is_adopted_by_its_mark_alone(kind, hand, sandbox, tmp_path):
    path = written(tmp_path / "site.yaml", hand.site(kind, hand.said))
    assert made(apply(path, sandbox))
    with administrator(path, sandbox) as vcenter:
        hand.hand(vcenter)
        assert hand.unmark is not None
        hand.unmark(vcenter)
    before, key = sandbox.world(), Key(kind, hand.object)

    written(path, hand.site(kind, hand.changed))  # the file wants more than there is
    assert shown(plan(path, sandbox, adopt=frozenset({key}), adopt_only=True)) == {"mark"}
    done = apply(path, sandbox, adopt=frozenset({key}))
    assert made(done), endings(done)
    assert moved(before, sandbox.world()) == {}
    assert shown(plan(path, sandbox)) == hand.shown
