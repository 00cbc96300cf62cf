"""Changes each field of a kind by itself on a sandbox, and tells what becomes of it. `python -m kinds.changed_fields` in tests/
writes docs/reference/changed-fields.md.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from kinds.lifecycle import EXAMPLES, SPECS, apply, drift, endings, from_tests, made, of_test, plan, world

import bfinfra.kinds as registry
from bfinfra import sandbox as sandboxes
from bfinfra.kinds.vcenter.base.machine.steps import Move, Relocate
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Action, Item
from bfinfra.model.step import Disruption
from bfinfra.sandbox import Running

PAGE = Path(__file__).parents[2] / "docs/reference/changed-fields.md"
HEAD = """# What becomes of a changed field

Made by `python -m kinds.changed_fields` in tests/: each field of the kinds in vCenter, changed by itself in the site of an example. Either the
plan refuses the change, or an apply does it, and then a plan has nothing to do and drift is none. `tests/kinds/test_changed_fields.py` tries all of
it, and that no field is missing.

| kind | the field becomes | what happens |
|---|---|---|
"""
HOW = {
    "bitfusion_server.first": "the order of creation, and who joins whom: inside the appliance",
    "bitfusion_server.gpu_memory": "a number to compute `memory` and `mmio` from",
    "bitfusion_server.library": "how the appliance gets to vCenter",
    "bitfusion_server.ova": "it needs another file; test_bitfusion_server.py",
    "bitfusion_server.port": "where `readiness` knocks",
    "bitfusion_server.readiness": "when an apply goes on",
    "bitfusion_server.vgpu_profile": "it goes with `attach: vgpu`; test_bitfusion_server.py",
    "bitfusion_vm.vm": "a reference to the VM; another one is another resource",
    "content_library.subscription": "a library is one of the two for its life; test_content_library.py",
    "distributed_switch.version": "test_distributed_switch.py raises it",
    "gpu_host.reboot": "whether an apply may restart the host",
    "gpu_host.reboot_in_use": "whether it may while cards are in use",
    "host_graphics.hosts": "test_host_graphics.py takes hosts out and in",
    "host_graphics.type": "it needs a restart of the host; test_host_graphics.py",
    "host_image.accept_eula": "a consent",
    "host_image.remediate": "whether an apply brings hosts to the image",
    "host_image.depot": "where components come from",
    "host_option.adapter": "it goes with an option that takes one; test_host_option.py",
    "port_group.switch": "it goes with another switch; test_port_group.py",
    "resource_pool.parent": "it goes with another pool; test_resource_pool.py",
    "virtual_machine.cloud_init": "it needs a file; test_virtual_machine.py",
    "virtual_machine.library": "it goes without `template`; test_virtual_machine.py",
    "virtual_machine.properties": "they go with `library`; test_virtual_machine.py",
    "virtual_machine.role": "what it is for: bfinfra warns if it is too small for it",
    "vm_class.device_groups": "a host of the world has none; test_vm_class.py",
    "vm_class.instance_storage": "test_vm_class.py",
    "vm_class.memory_reservation": "as `cpu_reservation`",
    "vm_class.vgpus": "test_vm_class.py",
    "vmkernel_adapter.port_group": "it goes with another port group; test_vmkernel_adapter.py",
}
"""Fields that say how, or that the example's world can't change by themselves: why, and where they are tried."""
NOTES = re.compile(r'bfinfra[^"\\\n]*')
COUNTED = re.compile(r"[vV]ersion|modified|ConfigId|[Tt]ime")


def bare(sandbox: Running) -> str:
    """The world without notes of bfinfra, counters and times."""
    return NOTES.sub("", "\n".join(line for line in world(sandbox).splitlines() if not COUNTED.search(line)))


def fields_of(kind: str) -> list[dict[str, Any]]:
    """The changes that the kind's tests name."""
    found = of_test(kind, "CHANGED_FIELDS")
    assert isinstance(found, list | tuple)
    return [*found]


def tried(kind: str, sandbox: Running, path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each change, with what becomes of it. Asserts that what is noted as applied was done."""
    text = re.sub(r"(0x[0-9a-f]{4})", r'"\1"', EXAMPLES[kind].read_text())
    example = yaml.safe_load(text)
    (name, *_) = example[kind]
    for fields in fields_of(kind):
        _as_the_example(path, example, sandbox)
        site, before = copy.deepcopy(example), bare(sandbox)
        site[kind][name] |= {
            field: {**site[kind][name].get(field, {}), **value} if field == "properties" else value
            for field, value in fields.items()
        }
        path.write_text(yaml.safe_dump(site))
        try:
            outcome = _outcome(plan(path, sandbox).items, f"{kind}/{name}")
            done = apply(path, sandbox)
        except BfinfraError as refused:
            assert refused.problems
            assert bare(sandbox) == before
            yield fields, f"refused: {refused.problems[0].what.removeprefix(f'{kind}/{name}: ')}"
            continue
        assert made(done), (fields, endings(done))
        assert plan(path, sandbox).pending == (), fields
        assert drift(path, sandbox).found == (), fields
        if "done" in endings(done).values():
            assert bare(sandbox) != before, f"{fields}: noted as applied, and nothing was done"
        yield fields, outcome


def _as_the_example(path: Path, example: Any, sandbox: Running) -> None:
    """Apply the example, made anew where what is there can't become as it is."""
    path.write_text(yaml.safe_dump(example))
    with contextlib.suppress(BfinfraError):
        if made(apply(path, sandbox)):
            return
    assert made(apply(path, sandbox, destroy=True))
    assert made(apply(path, sandbox))


def _outcome(items: tuple[Item, ...], address: str) -> str:
    steps = [step for item in items for step in item.steps if str(item.key) == address]
    if any(item.action is Action.REPLACE for item in items):
        return "replaced"
    if not steps:
        return "nothing differs"
    how = "relocated" if any(isinstance(step, Relocate) for step in steps) else "written"
    how = "moved" if any(isinstance(step, Move) for step in steps) else how
    worst = max((step.disruption for step in steps), key=list(Disruption).index)
    return how + (f", with a {worst}" if worst is not Disruption.NONE else "")


def row(kind: str, fields: Mapping[str, Any], outcome: str) -> str:
    """A line of the page."""
    said = ", ".join(f"`{at}: {json.dumps(each)}`" for at, each in fields.items())
    return f"| `{kind}` | {said} | {outcome} |"


def kinds() -> list[str]:
    """The kinds in vCenter whose tests say how to change their fields."""
    return [kind for kind in registry.names("vcenter") if kind in from_tests("CHANGED_FIELDS")]


def main() -> None:
    """Write the page."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds():
            home = Path(folder, kind)
            home.mkdir()
            with mock.patch.dict(os.environ, {"BFINFRA_STATE_HOME": str(home / "state")}):
                running = sandboxes.start(SPECS / "worlds/small.yaml", home / "sandbox", pace=0)
                try:
                    rows += [row(kind, *each) for each in tried(kind, running, home / "site.yaml")]
                finally:
                    sandboxes.stop(running.state)
    PAGE.write_text(HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
