"""Somebody changes an object between the decision and the write of every kind that vCenter counts the versions
of: the write is refused, decided anew, and what they changed stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.by_hand import ByHand, administrator, done, leaves, of_kind
from kinds.lifecycle import EXAMPLES, QUICK, apply, endings, made, plan
from pyVmomi import vim

import bfinfra
import bfinfra.kinds as registry
from bfinfra.backends.vcenter import VCenter
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.model.events import StepBegun
from bfinfra.model.step import Versioned
from bfinfra.sandbox import Running

VERSIONED = sorted(
    name
    for name in registry.names("vcenter")
    if any(issubclass(step, Versioned) for step in registry.kind(name).step_types)
)
METHODS = (b"ReconfigVM_Task", b"UpdateConfig", b"ReconfigureDvs_Task", b"ReconfigureDVPortgroup_Task")
VERSIONS = (b"<changeVersion>", b"<configVersion>")


TITLES = ("reconfigure ", "change ", "note on VM ", "set what Bitfusion needs ")
"""How the titles of such steps begin."""


class Counting:
    """Middleware that keeps the writes with a version."""

    def __init__(self, inner: Any, writes: list[bytes]) -> None:
        self._inner, self._writes = inner, writes

    def handle_request(self, request: Any) -> Any:
        body = request.read()
        if any(method in body for method in METHODS) and any(version in body for version in VERSIONS):
            self._writes.append(body)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def raced(path: Path, sandbox: Running, hand: Callable[[VCenter], None]) -> int:
    """Apply while somebody changes it after the first such step was decided on, and before it runs; how many
    writes with a version were sent.
    """
    writes: list[bytes] = []
    changed: list[str] = []

    def by_hand(event: object) -> None:
        if isinstance(event, StepBegun) and event.title.startswith(TITLES) and not changed:
            changed.append(event.title)
            with administrator(path, sandbox) as vcenter:
                hand(vcenter)

    context = bfinfra.RunContext(
        sandbox=sandbox, retry=QUICK, middleware=(lambda inner: Counting(inner, writes),)
    )
    outcome = apply(path, sandbox, context=context, on_event=by_hand)
    assert changed
    assert made(outcome), endings(outcome)
    assert plan(path, sandbox).pending == ()
    return len(writes)


def site(folder: Path, kind: str, given: ByHand, fields: Any) -> Path:
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump(given.site(kind, fields), sort_keys=False))
    return path


def test_every_kind_of_machines_pools_and_switches_is_versioned() -> None:
    assert VERSIONED == [
        "bitfusion_server",
        "bitfusion_vm",
        "distributed_switch",
        "port_group",
        "resource_pool",
        "virtual_machine",
    ]


@pytest.mark.parametrize("kind", [kind for kind in VERSIONED if of_kind(kind)])
def test_what_somebody_changed_meanwhile_stays(kind: str, sandbox: Running, tmp_path: Path) -> None:
    given = of_kind(kind)[0]
    worlds = []
    for faster in (False, True):
        sandbox.reset()
        assert made(apply(site(tmp_path, kind, given, given.said), sandbox))
        path = site(tmp_path, kind, given, given.changed)
        if faster:
            assert raced(path, sandbox, given.hand) == 2, "refused once, then done"
        else:
            with administrator(path, sandbox) as vcenter:
                given.hand(vcenter)
            assert made(apply(path, sandbox))
        worlds.append(leaves(sandbox.world()["inventory"]))
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize("kind", ["bitfusion_server", "bitfusion_vm"])
def test_the_note_on_a_machine_that_changed_meanwhile_is_decided_anew(kind: str, sandbox: Running) -> None:
    sandbox.reset()

    def annotate(vcenter: VCenter) -> None:
        for each in vcenter.machines.survey(MARK):
            spec = vim.vm.ConfigSpec(annotation="by hand")
            done(vcenter, vim.VirtualMachine, each.moid, "ReconfigVM_Task", spec)

    assert raced(EXAMPLES[kind], sandbox, annotate) >= 2, "refused once, then done"
    assert '"annotation": "by hand"' in str(sandbox.world()).replace("'", '"')


@pytest.mark.parametrize("kind", VERSIONED)
def test_a_version_is_no_part_of_a_plan(kind: str) -> None:
    for step in registry.kind(kind).step_types:
        found = vars(step).get("__dataclass_fields__", {}).get("version")
        assert found is None or not (found.compare or found.repr)
