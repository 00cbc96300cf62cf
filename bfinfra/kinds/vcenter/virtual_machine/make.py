"""Creates a VM: cloned from a template or from the VM template of a library item, or deployed from an OVF
item. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bfinfra.backends.vcenter.library_items import OVF, TEMPLATE, Item
from bfinfra.backends.vcenter.places import Nowhere, only
from bfinfra.backends.vcenter.vm import Attach, Clone, Deployment, Hardware, Vm
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.devices import added
from bfinfra.kinds.vcenter.base.machine.notes import MARK
from bfinfra.kinds.vcenter.base.machine.state import identity
from bfinfra.kinds.vcenter.virtual_machine.devices import Further, disks_between, grown, new_disks, resolved
from bfinfra.kinds.vcenter.virtual_machine.home import place
from bfinfra.kinds.vcenter.virtual_machine.properties import check, normal
from bfinfra.kinds.vcenter.virtual_machine.spec import Library, Spec
from bfinfra.kinds.vcenter.virtual_machine.state import State, VirtualMachineFacts, options
from bfinfra.kinds.vcenter.virtual_machine.steps import Deployed
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret


def source(spec: Spec) -> str:
    """The source in words, for titles."""
    return f"{spec.library.item} of the library {spec.library.name}" if spec.library else spec.template or ""


def make(
    name: str, spec: Spec, guest: Mapping[str, str], mark: Mark, context: PlanContext
) -> Clone | Deployed | Unknown:
    """A clone or deployment with all its devices; Unknown if this site has still to make a port group, the
    pool or the library. Raises Refusal if a part doesn't exist.
    """
    facts: VirtualMachineFacts = context.facts
    inventory, nics, origin, home = (
        facts.inventory,
        resolved(spec, context),
        _origin(spec, context),
        place(spec, context),
    )
    needed = (*(each.network for each in nics), origin, home.pool)
    if later := next((each for each in needed if isinstance(each, Unknown)), None):
        return later
    to: dict[str, Any] = {
        "name": name,
        "folder": home.folder,
        "pool": home.pool,
        "host": home.host,
        "datastore": home.datastore,
    }
    template = _flat(origin) if isinstance(origin, Vm) else None
    own, further = (
        identity(context.mark.site, context.mark.address),
        disks_between(spec, template, inventory) if template else Further(add=new_disks(spec, inventory)),
    )
    hardware = Hardware(
        cpus=spec.cpus,
        memory=spec.memory,
        reserve=spec.reserved or None,
        instance_uuid=own,
        drop=tuple(nic.key for nic in template.nics) if template else (),
        extra={MARK: mark.on(own).encode(), **{k: v for k, v in options(guest).items() if v}, **spec.extra},
        attach=tuple(Attach(profile=profile) for profile in spec.vgpus),
        grow={**(grown(spec, template) if template else {}), **further.grow},
        add_disks=further.add,
        **added(nics),
    )
    if template is not None and spec.properties:
        raise Refusal(
            "its item is a VM template",
            field="properties",
            why="only OVF items have properties",
            next="leave them out",
        )
    if template is not None:
        return Clone(source=template.moid, hardware=hardware, **to)
    assert isinstance(origin, Item)
    check(spec, facts.declared.get(pair(spec), ()), facts.secrets.get(name, {}))
    return Deployed(
        item=origin.id,
        deployment=Deployment(extra={MARK: context.mark.encode()}, **to),
        hardware=hardware,
        properties={k: v if isinstance(v, Secret) else normal(v) for k, v in spec.properties.items()},
    )


def _flat(template: Vm) -> Vm:
    """The template as its clone will be: of whole disks."""
    return replace(template, disks=tuple(replace(disk, linked=False) for disk in template.disks))


def remade(spec: Spec, state: State, context: PlanContext) -> tuple[Change, ...]:
    """What only a new VM can have: another template or item than the one that it was made from, if that is
    still there under its name. An adopted VM was made from something else, and stays.
    """
    facts: VirtualMachineFacts = context.facts
    before, now = state.applied, spec.applied()
    former = _named(before.get("template"), before.get("library"), facts)
    ours = state.machine.instance_uuid == identity(context.mark.site, context.mark.address)
    if not ours or former is None or former == _named(now.get("template"), now.get("library"), facts):
        return ()
    return tuple(
        Change(each, before.get(each), now.get(each))
        for each in ("template", "library")
        if before.get(each) != now.get(each)
    )


def _named(
    template: str | None, library: Mapping[str, str] | None, facts: VirtualMachineFacts
) -> Vm | Item | None:
    """The one template or item that is there under that name."""
    if library:
        item, held = facts.items.get((library["name"], library["item"]), (None, None))
        return held or item
    return only(facts.templates.get(template or "", Nowhere()))


def pair(spec: Spec) -> tuple[str, str]:
    """The names of library and item; empty if it is cloned from a template."""
    return (spec.library.name, spec.library.item) if spec.library else ("", "")


def _origin(spec: Spec, context: PlanContext) -> Vm | Item | Unknown:
    facts: VirtualMachineFacts = context.facts
    if spec.library is not None:
        return _held(spec.library, context)
    text = spec.template or ""
    return the(facts.templates.get(text, Nowhere()), "template", text, "template")


def _held(library: Library, context: PlanContext) -> Vm | Item | Unknown:
    """The VM template of an item, or the item if it is an OVF. Raises Refusal if there is neither."""
    facts: VirtualMachineFacts = context.facts
    need, (item, template) = (
        context.needs.get("library.name"),
        facts.items.get((library.name, library.item), (None, None)),
    )
    if item is None and need is not None and need.spec is not None and need.state is None:
        return Unknown(need.key, "library")
    if item is None:
        raise Refusal(
            f"there is no item {library.item} in a content library {library.name}",
            field="library.item",
            why="vCenter doesn't have it",
            next="correct the names, or wait until the library is synchronised",
        )
    if item.type not in (OVF, TEMPLATE):
        raise Refusal(
            f"the item {library.item} is of type {item.type or 'nothing'}",
            field="library.item",
            why="VMs are created from OVFs and VM templates",
        )
    if item.type == TEMPLATE and template is None:
        raise Refusal(
            f"the VM template of the item {library.item} can't be read",
            field="library.item",
            why="it is deleted, or the account may not read it",
        )
    return template or item
