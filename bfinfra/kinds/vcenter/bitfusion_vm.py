"""Options that the Bitfusion plug-in sets on a VM whose guest becomes a client. They are set while the VM is
off. (Consolidated GPU cluster: enabling Bitfusion access.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from bfinfra.backends.vcenter.places import Found, Inventory, Lookup, Nowhere, Several, Thing
from bfinfra.backends.vcenter.vm import Brief, Hardware, Vm
from bfinfra.kinds.audit import of_machines
from bfinfra.kinds.capabilities import machine
from bfinfra.kinds.named import the
from bfinfra.kinds.vcenter.base.machine.notes import MARKS, OF_ALL, SETTINGS
from bfinfra.kinds.vcenter.base.machine.places import named
from bfinfra.model import compare, conflict, kind, resource
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.conflict import Taken
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import LastWriter, Observation, Report
from bfinfra.model.mark import Mark
from bfinfra.model.order import Capability, Specs
from bfinfra.model.readiness import READY, Readiness, waiting
from bfinfra.model.reading import Reading
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, Ref
from bfinfra.model.rights import READ, VCENTER, Entity, PrivilegePlaces, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step, Versioned

if TYPE_CHECKING:
    from bfinfra.backends.survey_cache import SurveyCache
    from bfinfra.backends.vcenter import VCenter

NAME = "bitfusion_vm"
BEFORE = "bfinfra.bitfusion.before"
"""The key of a mark whose `applied` holds the earlier values; "" = there was none."""
VM = Annotated[str, Ref("virtual_machine", optional=True)]


def _theirs(key: str) -> str:
    if key.startswith("bfinfra."):
        raise ValueError(f"{key} is a note of bfinfra's own")
    return key


Option = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{1,80}$"), AfterValidator(_theirs)]


class Spec(resource.Spec):
    """The desired state of one VM."""

    vm: VM
    """The VM, of this site or existing."""
    settings: Annotated[dict[Option, str], Field(min_length=1)]
    """Options of the VM (extraConfig) as the plug-in sets them. VMware doesn't publish them: compare a VM
    before and after you enable it by hand.
    """

    def takes(self, name: str) -> Iterator[Taken]:
        """The settings of the VM, which two resources can't both set."""
        yield conflict.thing("vm", f"the settings of the VM {self.vm}", "VM")

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The VM with its options."""
        yield machine(self.vm)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """A VM with a note of this site, or one that the site names. `before`: the earlier values of the options
    that are set.
    """

    vm: VM
    machine: Vm
    before: Mapping[str, str] = field(default_factory=dict)

    def last_known(self) -> str:
        """Return why its fields are last known values; "" if they are current."""
        return self.machine.last_known

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return that its VM is off while it is."""
        return "" if self.machine.on else f"is on the VM {self.vm}, which is off"


@dataclass(frozen=True)
class BitfusionVmFacts:
    """`named`: what each VM's name or path in the site leads to."""

    named: Mapping[str, Lookup[Thing]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _OnMachine(Versioned):
    vm: str
    moid: str | Unknown


@dataclass(frozen=True, kw_only=True)
class Stop(_OnMachine):
    """shut down {vm}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOff"),)
    disruption = Disruption.POWER_CYCLE
    why = "the plug-in's settings of a VM take effect at its next start"

    @property
    def way_back(self) -> Step | None:
        """Power on."""
        return Start(vm=self.vm, moid=self.moid)


@dataclass(frozen=True, kw_only=True)
class StopFirst(Stop):
    """shut down {vm}"""

    preapproved = True
    why = "this site creates and starts it, and nobody uses it yet"


@dataclass(frozen=True, kw_only=True)
class Set(_OnMachine):
    """set what Bitfusion needs of {vm}"""

    rights = (holds("machines", "VirtualMachine.Config.AdvancedConfig"),)
    extra: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SetFirst(Set):
    """set what Bitfusion needs of {vm}, which this site starts before"""

    disruption = Disruption.POWER_CYCLE
    preapproved = True
    why = "it is created first, and nobody uses it yet"


@dataclass(frozen=True, kw_only=True)
class Start(_OnMachine):
    """power on {vm}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOn"),)


@dataclass(frozen=True, kw_only=True)
class PutBack(_OnMachine):
    """put the settings of {vm} back as they were, from its next start on"""

    rights = (holds("machines", "VirtualMachine.Config.AdvancedConfig"),)
    uses = (Use.APPLY, Use.DESTROY)
    extra: Mapping[str, str]


class BitfusionVM(kind.Kind[Spec, State]):
    """The options that the Bitfusion plug-in sets on a VM."""

    document = Document.CONSOLIDATED
    followed = True
    managed = False
    deadline = 1800
    undescribed = "VMware doesn't publish which options the Bitfusion plug-in sets, and a VM doesn't tell"
    step_types = (Stop, StopFirst, Set, SetFirst, Start, PutBack)
    survey_privileges = (holds(VCENTER, *READ),)

    prefetch = (MARKS,)

    def __init__(self, vcenter: VCenter, cache: SurveyCache, site: Site) -> None:
        self._vcenter = vcenter
        self._cache = cache
        self._site = site.name

    def fetch(self, reading: Reading[object], wanted: Mapping[str, Spec | None]) -> list[Brief]:
        """The marks of all VMs, which the other kinds of VMs read, too."""
        return self._vcenter.machines.survey(*OF_ALL)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the notes of all VMs, then the details of those with a note of this site and of those that
        the site names.
        """
        briefs = self._cache.read(MARKS, NAME, lambda: self.fetch(MARKS, {}))
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        homes = {
            brief.moid: name
            for brief in briefs
            if (name := self._noted(brief)) and (include_unlisted or name in wanted)
        }
        meant = self._meant(specs, needs, briefs)
        asked = {*homes, *(each.thing.moid for each in meant.values() if isinstance(each, Found))}
        keys = sorted({SETTINGS, BEFORE, *(key for spec in specs.values() for key in spec.settings)})
        found = {
            machine.moid: machine
            for machine in (self._vcenter.machines.read(sorted(asked), keys) if asked else ())
        }
        found |= {moid: self._with_before(machine) for moid, machine in found.items() if moid in homes}
        states = {
            name: _state(machine)
            for moid, name in homes.items()
            if (machine := found.get(moid)) is not None and _state(machine).mark
        }
        states |= {
            name: _state(found[each.thing.moid])
            for name, spec in specs.items()
            if name not in states and isinstance(each := meant[spec.vm], Found) and each.thing.moid in found
        }
        return Observation(states, BitfusionVmFacts(meant))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Stop, set and start again, if something differs; restore the earlier values if the resource left
        the site.
        """
        if spec is None:
            return () if state is None or state.mark is None else (_put_back(state),)
        _check(spec, state, context)
        return tuple(_steps(spec, state, context))

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The datacenter's root folder, as the VM may be anywhere."""
        return {"machines": (Entity(f"/{datacenter}/vm", "Folder", propagate=True),)}

    def ready(self, spec: Spec | None, state: State) -> Readiness:
        """Ready when the VM and VMware Tools run."""
        return (
            READY
            if spec is None or (state.machine.on and state.machine.tools)
            else waiting("its guest is starting" if state.machine.on else "it is off")
        )

    def audit(
        self, asked: Mapping[str, tuple[State | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """The last writer of each field, from the events of the VMs."""
        return of_machines(self._vcenter.events, asked, lambda state: state.machine.moid)

    def run(self, step: Step, report: Report) -> None:
        """Runs one step."""
        machines = self._vcenter.machines
        match step:
            case Stop(moid=str() as moid):
                machines.stop(moid)
            case Set(moid=str() as moid, extra=extra) | PutBack(moid=str() as moid, extra=extra):
                what = "the settings for Bitfusion"
                machines.reconfigure(moid, Hardware(extra=extra), what, version=step.version)
            case Start(moid=str() as moid):
                machines.power_on(moid)
            case _:
                raise AssertionError(step)

    def _meant(
        self, specs: Mapping[str, Spec], needs: Mapping[Key, ResolvedRef], briefs: Sequence[Brief]
    ) -> Mapping[str, Lookup[Thing]]:
        """What the names lead to: to the site's own machine, whoever else's has its name. The places of VMs
        are read only where a name alone doesn't tell.
        """
        texts = {spec.vm for spec in specs.values()}
        own = {
            text: Found(Thing(moid=need.state.machine.moid, name=text))
            for text in texts
            if (need := needs.get(Key("virtual_machine", text))) and need.state is not None
        }
        unclear = [each for each in texts - own.keys() if sum(b.name == each for b in briefs) != 1]
        inventory = self._vcenter.inventory.read() if unclear else Inventory()
        return {**named(texts, briefs, inventory), **own}

    def _noted(self, brief: Brief) -> str | None:
        mark = Mark.owner_in(brief.also[-1])
        return mark.name_of(self._site, NAME) if mark is not None else None

    def _with_before(self, machine: Vm) -> Vm:
        """The VM, read again with the keys that its note lists and the site no longer has."""
        more = sorted(_before(machine).keys() - machine.extra.keys())
        again = self._vcenter.machines.read([machine.moid], [*machine.extra, *more]) if more else []
        return again[0] if again else machine


def _state(machine: Vm) -> State:
    """The state of a VM. A copy has its original's note and another instance UUID: it counts as unmarked."""
    noted = Mark.decode(machine.extra.get(SETTINGS))
    mark = noted.where(machine.instance_uuid) if noted else None
    return State(mark=mark, vm=machine.name, machine=machine, before=_before(machine) if mark else {})


def _before(machine: Vm) -> Mapping[str, str]:
    kept = Mark.decode(machine.extra.get(BEFORE))
    return {str(key): str(value) for key, value in ((kept.applied if kept else None) or {}).items()}


def _steps(spec: Spec, state: State | None, context: PlanContext) -> Iterator[Step]:
    if state is None:
        moid = Unknown(context.needs["vm"].key, "machine")
        changes = compare.differences(None, spec.applied())
        yield StopFirst(vm=spec.vm, moid=moid, changes=changes)
        yield SetFirst(vm=spec.vm, moid=moid, extra=spec.settings, changes=changes)
        yield Start(vm=spec.vm, moid=moid)
        return
    machine, committed = state.machine, context.mark.committed(spec.applied())
    drift = [
        Change(f"settings.{key}", machine.extra.get(key) or None, value)
        for key, value in spec.settings.items()
        if machine.extra.get(key, "") != value
    ]
    drift += [
        Change(f"settings.{key}", machine.extra.get(key) or None, value or None)
        for key, value in _gone(spec, state).items()
        if machine.extra.get(key, "") != value
    ]
    need = context.needs.get("vm")
    ours = need is not None and need.spec is not None
    listed = (
        need is not None and ours and need.state is not None and not need.state.machine.on
    )  # the virtual_machine itself starts it
    power = () if machine.on or listed else (Change("power", "off", "on"),)
    at: dict[str, Any] = {
        "vm": spec.vm,
        "moid": machine.moid,
        "version": machine.version,
        "changes": compare.changes(spec, state.mark, (*drift, *power)),
    }
    if drift and machine.on:
        yield Stop(**at)
    if drift or state.mark != committed:
        before = {key: state.before.get(key, machine.extra.get(key, "")) for key in spec.settings}
        notes = {
            SETTINGS: committed.on(machine.instance_uuid).encode(),
            BEFORE: context.mark.committed(before).encode(),
        }
        step = SetFirst if drift and not machine.on and ours else Set
        yield step(extra={**_gone(spec, state), **spec.settings, **notes}, **at)
    if drift or power:
        yield Start(**at)


def _gone(spec: Spec, state: State) -> dict[str, str]:
    """Options that were set and have left the site, with their earlier values."""
    return {key: value for key, value in state.before.items() if key not in spec.settings}


def _put_back(state: State) -> PutBack:
    return PutBack(
        vm=state.vm,
        moid=state.machine.moid,
        version=state.machine.version,
        extra={**state.before, SETTINGS: "", BEFORE: ""},
    )


def _check(spec: Spec, state: State | None, context: PlanContext) -> None:
    facts: BitfusionVmFacts = context.facts or BitfusionVmFacts()
    need = context.needs.get("vm")
    if state is None and (need is None or need.spec is None):
        the(facts.named.get(spec.vm, Nowhere()), "VM", spec.vm, "vm")
    if need is not None and need.spec is not None and getattr(need.spec, "power", "on") == "off":
        raise Refusal(
            f"{need.key} is to be off",
            field="vm",
            why="a client must be running",
            next="write power: on there",
        )
    context.mark.refuse_others(
        state.mark if state else None, f"the settings of {spec.vm} are managed by another resource", "vm"
    )
    meant = facts.named.get(spec.vm, Nowhere())
    same = meant.thing.moid == state.machine.moid if state and isinstance(meant, Found) else False
    if state is not None and state.mark is not None and not same and not isinstance(meant, Several):
        raise Refusal(
            f"the settings are those of {state.vm}",
            field="vm",
            why="they can't move to another VM",
            next="write a resource of another name for the other VM",
        )
