"""Decides the steps for a machine: pure. The machine comes first, switched off, and its parts after it: they
name it as their owner, and go with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import mark_only, marked
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm import refusals
from bfinfra.kinds.supervisor.service_vm.catalog import ServiceVmFacts
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.kinds.supervisor.service_vm.state import State
from bfinfra.kinds.supervisor.service_vm.steps import (
    Await,
    Clear,
    Create,
    Delete,
    DropDisk,
    DropSecret,
    Expose,
    Hide,
    KeepDisk,
    MakeDisk,
    ReleaseDisk,
    Replace,
    SetDisk,
    Start,
    Stop,
    Update,
    WriteSecret,
)
from bfinfra.model import compare
from bfinfra.model.compare import Change, Unknown, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

SECRETS = "secrets"
"""The field of a change of what its Secret holds."""
PARTS = ("disks", "expose", SECRETS)
"""First parts of fields that are not the machine's own."""
ATTACHED = ".attached"
"""The end of a disk's field that the machine's own object has."""
SHAPE = ("size", "storage_class")
IN_USER_WORDS = {"vm_class": "another vGPU or card", "storage_class": "another storage class"}


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """Create, change, replace, delete."""
    if spec is None:
        return tuple(_removal(name, state)) if state is not None and not state.going else ()
    if state is None or state.going:
        return tuple(_Making(name, spec, None, context).anew())
    if state.namespace != spec.namespace:
        raise Refusal(
            "a VM can't move to another namespace",
            field="namespace",
            why=f"it is in {state.namespace}, and its disks would stay there",
            next=f"write {state.namespace}, or delete it first",
        )
    return tuple(_update(name, spec, state, context))


def drifted(name: str, spec: Spec, state: State) -> tuple[Change, ...]:
    """The fields in which the machine or a part of it is not as written. Properties and disks that the file
    never had don't count.
    """
    applied = state.applied
    now, want = state.view(), form.wanted(name, spec)
    want["disks"] = {disk: form.disk_wanted(each, spec) for disk, each in spec.disks.items()}
    want["expose"] = sorted(spec.expose)
    had = applied.get("properties") or {}
    now["properties"] = {
        key: value
        for key, value in (now.get("properties") or {}).items()
        if key in (want.get("properties") or {}) or key in had
    }
    found = [*differences(now, want)]
    if spec.secrets and not state.secret:
        found.append(
            Change(SECRETS, None if state.secret is None else "other content", "as the site refers to")
        )
    if not spec.secrets and state.secret is not None:
        found.append(Change(SECRETS, "some", None))
    return tuple(found)


def _removal(name: str, state: State) -> Iterator[Step]:
    """Disks that outlive a replacement get their machine as owner first: then one call takes them all."""
    place: Any = {"name": name, "namespace": state.namespace, "home": state.home}
    for disk, claim in sorted(state.claims.items()):
        if state.has(claim.maker) and claim.owner != state.uid and not claim.going:
            owner = [{"apiVersion": state.api, "kind": form.VM, "name": name, "uid": state.uid}]
            body = {
                "apiVersion": "v1",
                "kind": form.CLAIM,
                "metadata": {
                    "name": form.claim_name(name, disk),
                    "namespace": state.namespace,
                    "ownerReferences": owner,
                },
            }
            change = (Change(f"disks.{disk}.keep", True, None),)
            yield ReleaseDisk(**place, disk=disk, manifest=body, changes=change)
    yield Delete(**place, api=state.api)


def _update(name: str, spec: Spec, state: State, context: PlanContext) -> Iterator[Step]:
    drift = () if compare.adopting(state.mark) else drifted(name, spec, state)
    changes = compare.changes(spec, state.mark, drift)
    if not changes:
        return
    make = _Making(name, spec, state, context)
    refusals.check_parts(name, spec, state)
    refusals.check_adopted(spec, state, context)
    if compare.adopting(state.mark):
        yield from make.adopted(changes)
        return
    if other := _fixed(spec, state, changes, make.facts):
        stay = ", ".join(sorted(disk for disk, each in spec.disks.items() if each.keep))
        yield Replace(
            **make.place,
            api=state.api,
            what=other,
            kept=f"its disks {stay} stay" if stay else "all its disks go with it",
            changes=changes,
        )
        yield from make.anew({disk for disk, each in spec.disks.items() if each.keep} & state.claims.keys())
        return
    refusals.check(name, spec, state, context)
    yield from make.parts(changes, drift)
    yield from make.itself(changes)
    yield from make.leftovers(changes)


def _fixed(spec: Spec, state: State, changes: Sequence[Change], facts: ServiceVmFacts) -> str:
    """Return which of the changes an existing machine can't take, in words; "" for none."""
    fields = {change.field.partition(".")[0] for change in changes}
    if "image" in fields:
        return "another image"
    if "storage_class" in fields:
        return IN_USER_WORDS["storage_class"]
    if "cloud_init" in fields and ("cloudInit" in (state.body.get("bootstrap") or {})) != (
        spec.cloud_init is not None
    ):
        return "another kind of bootstrap"
    if "vm_class" in fields and not resizes(_class(state), spec.vm_class, facts):
        return IN_USER_WORDS["vm_class"]
    return ""


def resizes(before: str, after: str, facts: ServiceVmFacts) -> bool:
    """Return whether two classes differ in CPUs and memory alone, as far as vCenter shows them."""
    classes = facts.environment.gpus.classes
    if before == after:
        return True
    if before not in classes or after not in classes:
        return False
    old, new = classes[before], classes[after]
    return (old.vgpus, old.devices, old.groups) == (new.vgpus, new.devices, new.groups)


class _Making:
    """Steps that write a machine and its parts."""

    def __init__(self, name: str, spec: Spec, state: State | None, context: PlanContext) -> None:
        self.name, self.spec, self.state, self.context = name, spec, state, context
        self.facts: ServiceVmFacts = context.facts or ServiceVmFacts()
        self.home = state.home if state else context.needs["namespace"].get("endpoint")
        self.mark = context.mark.committed(spec.applied())
        self.api = state.api if state else self.facts.apis.get(spec.namespace, "")
        self.place: Any = {"name": name, "namespace": spec.namespace, "home": self.home}

    def anew(self, existing: Collection[str] = ()) -> Iterator[Step]:
        """All of it; off at first if parts come before its start. `existing`: disks that are there."""
        spec = self.spec
        refusals.check(self.name, spec, None, self.context)
        image = refusals.image(spec, self.context)
        rest = [*self._new_parts(existing)]
        power = form.OFF if rest else form.POWER[spec.power]
        if image is None:
            yield Await(
                **self.place,
                what=f"{spec.namespace} shows the item {spec.image.item} of {spec.image.library}",
            )
        yield Create(
            **self.place,
            changes=differences(None, spec.applied()),
            manifest=Unknown(Key("content_library", spec.image.library), spec.image.item)
            if image is None or not self.api
            else self._marked(form.machine(self.name, spec, self.api, image, power)),
        )
        yield from rest
        if rest and spec.power == "on":
            yield Start(**self.place, manifest=self._later())

    def _new_parts(self, existing: Collection[str]) -> Iterator[Step]:
        if self.spec.secrets:
            yield WriteSecret(**self.place, manifest=self._later(), source=self.spec.secrets)
        for disk in sorted(self.spec.disks.keys() - {*existing}):
            yield MakeDisk(**self.place, disk=disk, manifest=self._later())
        if self.spec.expose:
            yield Expose(**self.place, ports=self._ports(), manifest=self._later())

    def adopted(self, changes: Sequence[Change]) -> Iterator[Step]:
        """Yield the steps that mark the machine's parts and the machine, and change nothing else."""
        state, name, spec = self.state, self.name, self.spec
        assert state is not None
        place = {**self.place, "changes": changes}
        for disk, claim in sorted(state.claims.items()):
            if disk in spec.disks and claim.maker is None and not claim.going:
                manifest = mark_only(form.claim(name, spec, disk), self.mark, claim.metadata["uid"])
                yield SetDisk(**place, disk=disk, manifest=manifest)
        if spec.secrets and state.secret_uid:
            manifest = mark_only(form.secret(name, spec), self.mark, state.secret_uid)
            yield WriteSecret(**place, manifest=manifest, source={})
        if spec.expose and state.service is not None and state.service_maker is None:
            manifest = mark_only(form.service(name, spec, self.api), self.mark, state.service_metadata["uid"])
            yield Expose(**place, ports=self._ports(), manifest=manifest)
        machine = form.machine(name, spec, self.api, form.image_of(state.body), form.POWER[spec.power])
        yield Update(**place, manifest=mark_only(machine, self.mark, state.uid))

    def parts(self, changes: Sequence[Change], drift: Sequence[Change]) -> Iterator[Step]:
        """Yield the steps before the machine's own change: Secret, new and changed disks, service."""
        assert self.state is not None
        if self.spec.secrets and not self.state.secret:
            yield WriteSecret(
                **self.place,
                manifest=self._owned(form.secret(self.name, self.spec)),
                source=self.spec.secrets,
                changes=_of(changes, SECRETS),
            )
        for disk, given in sorted(self.spec.disks.items()):
            there = self.state.claims.get(disk)
            own = tuple(each for each in _of(changes, f"disks.{disk}") if not _off(each))
            if there is not None and there.going:
                yield Await(**self.place, what=f"the former disk {disk} is gone")
            body = form.claim(self.name, self.spec, disk)
            manifest = self._marked(body) if given.keep else self._owned(body)
            if there is not None and given.keep and there.owner:
                yield KeepDisk(**self.place, disk=disk, changes=own)
            if there is None:
                yield MakeDisk(**self.place, disk=disk, manifest=manifest, changes=own)
            elif there.maker is None or _differs(_of(drift, f"disks.{disk}"), disk, keep=given.keep):
                yield SetDisk(**self.place, disk=disk, manifest=manifest, changes=own)
        ports = sorted(self.spec.expose)
        existing = form.ports(self.state.service) if self.state.service_maker and self.state.service else []
        if ports and existing != ports:
            yield Expose(
                **self.place,
                ports=self._ports(),
                manifest=self._owned(form.service(self.name, self.spec, self.api)),
                changes=_of(changes, "expose"),
            )

    def itself(self, changes: Sequence[Change]) -> Iterator[Step]:
        """The machine: one write, after it is off if its class changes."""
        assert self.state is not None
        state, spec = self.state, self.spec
        own = tuple(each for each in changes if each.field.partition(".")[0] not in PARTS or _off(each))
        volumes = {disk: form.claim_name(self.name, disk) for disk in spec.disks}
        attached = {
            disk: claim
            for disk, claim in form.volumes(state.body).items()
            if disk in volumes or disk in state.claims
        }
        noted = state.mark is not None and state.mark.applied == spec.applied()
        if not own and noted and attached == volumes:
            return
        image = form.image_of(state.body)
        body = self._marked(form.machine(self.name, spec, self.api, image, form.POWER[spec.power]))
        before = _class(state)
        if before != spec.vm_class and form.OFF not in (state.power, form.POWER[spec.power]):
            off = spec.model_copy(update={"vm_class": before})
            halted, running = (
                marked(form.machine(self.name, off, self.api, image, power), state.mark or self.context.mark)
                for power in (form.OFF, state.power)
            )
            yield Stop(**self.place, manifest=halted, running=running, changes=_of(changes, "vm_class"))
        mixed, left = form.mixed(self.name, spec, state.body)
        if mixed:
            of_properties = _of(changes, "properties")
            yield Clear(**self.place, api=self.api, keys=", ".join(mixed), left=left, changes=of_properties)
        starts = {each.field for each in own} == {"power"} and spec.power == "on"
        yield (Start if starts else Update)(**self.place, manifest=body, changes=own)

    def leftovers(self, changes: Sequence[Change]) -> Iterator[Step]:
        """Yield the deletions of parts that have left the file, after the machine has let go of them."""
        assert self.state is not None
        for disk, claim in sorted(self.state.claims.items()):
            if disk not in self.spec.disks and self.state.has(claim.maker) and not claim.going:
                yield DropDisk(**self.place, disk=disk, changes=_of(changes, f"disks.{disk}"))
        if not self.spec.secrets and self.state.secret is not None:
            yield DropSecret(**self.place, changes=_of(changes, SECRETS))
        if (
            not self.spec.expose
            and self.state.service is not None
            and self.state.has(self.state.service_maker)
        ):
            yield Hide(**self.place, api=self.api, changes=_of(changes, "expose"))

    def _ports(self) -> str:
        return ", ".join(str(port) for port in sorted(self.spec.expose))

    def _marked(self, manifest: Mapping[str, object]) -> Mapping[str, Any]:
        return marked(manifest, self.mark)

    def _owned(self, manifest: Mapping[str, object]) -> Mapping[str, Any]:
        assert self.state is not None
        return form.owned(self._marked(manifest), self.api, self.name, self.state.uid)

    def _later(self) -> Unknown:
        return Unknown(Key("service_vm", self.name), "uid")


def _class(state: State) -> str:
    """The class that the machine has, whatever is written."""
    return state.has_class or str(state.body.get("className"))


def _of(changes: Sequence[Change], field: str) -> tuple[Change, ...]:
    return tuple(each for each in changes if each.field == field or each.field.startswith(f"{field}."))


def _off(change: Change) -> bool:
    """Return whether it is a disk that the machine's own object lacks."""
    return change.field.endswith(ATTACHED) and change.wanted is True


def _differs(changes: Sequence[Change], disk: str, *, keep: bool) -> bool:
    """Return whether the claim itself is not as written. One that stays loses its owner in a step
    of its own.
    """
    fields = SHAPE if keep else (*SHAPE, "keep")
    return any(
        each.field == f"disks.{disk}" or each.field.removeprefix(f"disks.{disk}.") in fields
        for each in changes
    )
