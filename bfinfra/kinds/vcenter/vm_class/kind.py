"""The kind vm_class: one read of all classes, one call for each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.backends.vcenter import vm_classes
from bfinfra.backends.vcenter.vm_classes import ClassStorage, VmClasses
from bfinfra.kinds.vcenter.vm_class.offered import VmClassFacts, too_new, unoffered
from bfinfra.kinds.vcenter.vm_class.spec import Spec
from bfinfra.model import compare, kind, resource
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, PrivilegePlaces, Use, holds
from bfinfra.model.step import Step
from bfinfra.model.units import bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

MANAGE = holds("classes", "VirtualMachineClasses.Manage")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The class as vCenter reports it."""

    settings: vm_classes.VmClass


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create VM class {name}"""

    rights = (MANAGE,)
    name: str
    settings: vm_classes.VmClass


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update VM class {name}; machines that are there keep what they have"""

    rights = (MANAGE,)
    name: str
    settings: vm_classes.VmClass


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete VM class {name}"""

    destructive = True
    rights = (MANAGE,)
    uses = (Use.DESTROY,)
    name: str


class VmClass(kind.Kind[Spec, State]):
    """A VM class."""

    document = Document.CONSOLIDATED
    alone = True
    step_types = (Create, Update, Delete)
    survey_privileges = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter) -> None:
        self._classes = VmClasses(vcenter)
        self._vgpus = vcenter.vgpus

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the list of classes, and what hosts offer only if a class wants vGPUs."""
        found = {
            name: State(mark=_mark(name, each), settings=each) for name, each in self._classes.list().items()
        }
        return Observation(
            {
                name: state
                for name, state in found.items()
                if name in wanted or (include_unlisted and state.mark)
            },
            self._facts([spec for spec in wanted.values() if spec is not None]),
        )

    def _facts(self, wanted: Sequence[Spec]) -> VmClassFacts:
        groups = any(spec.device_groups for spec in wanted)
        asked = groups or any(spec.vgpus for spec in wanted)
        newer = groups or any(each.alternatives for spec in wanted for each in spec.devices)
        return VmClassFacts(
            self._vgpus.offered(groups=groups) if asked else (), not newer or self._classes.specified
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every class, those that come with vCenter included."""
        for name, each in sorted(self._classes.list().items()):
            left_out = "it has PCI devices that no field describes" if each.others else ""
            state = State(mark=_mark(name, each), settings=each)
            yield Description(name, _view(each), state, left_out=left_out)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes or deletes it, in one step."""
        if spec is None:
            return () if state is None else (Delete(name=name),)
        settings = _settings(spec, context.mark, state)
        if (
            state is not None
            and state.settings.storage
            and not settings.storage
            and _sets(spec, state, "instance_storage")
        ):
            raise Refusal(
                "a class keeps its instance storage",
                field="instance_storage",
                why="vCenter can change it, and has no way to remove it",
                next="write it again, or make a class of another name",
            )
        if state is None:
            return (Create(name=name, settings=settings, changes=compare.differences(None, spec.applied())),)
        found = compare.changes(
            spec, state.mark, compare.drift(spec, state.mark, _view(state.settings), _view(settings))
        )
        return (Update(name=name, settings=settings, changes=found),) if found else ()

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: VmClassFacts | None) -> Iterator[Conflict]:
        """Profiles that no host offers, fields that an older vCenter lacks, and classes to delete that
        namespaces of others offer. vCenter refuses that, as their clusters create nodes from them.
        """
        facts = facts or VmClassFacts()
        yield from too_new(wanted, facts)
        yield from unoffered(wanted, states, facts)
        own = {key.name for key in (*wanted, *states) if key.kind == "supervisor_namespace"}
        for key, state in states.items():
            if (
                key.kind == "vm_class"
                and key not in wanted
                and (users := [name for name in state.settings.namespaces if name not in own])
            ):
                yield Conflict(
                    Spot(key),
                    f"it would be deleted, and {_counted(users)} it",
                    why="they are not this site's",
                    next="remove it there first",
                )

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The root, as classes are vCenter's own."""
        return {"classes": (ROOT,)}

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one REST call."""
        match step:
            case Create(name=name, settings=settings):
                self._classes.create(name, settings, self._components(settings))
            case Update(name=name, settings=settings):
                self._classes.update(name, settings, step.writes, self._components(settings))
            case Delete(name=name):
                self._classes.delete(name)
            case _:
                raise AssertionError(step)

    def _components(self, settings: vm_classes.VmClass) -> Mapping[str, Sequence[dict[str, Any]]]:
        return self._vgpus.components() if settings.groups else {}


def _counted(namespaces: Sequence[str]) -> str:
    return (
        f"the namespace {namespaces[0]} offers"
        if len(namespaces) == 1
        else f"the namespaces {', '.join(namespaces)} offer"
    )


def _mark(name: str, found: vm_classes.VmClass) -> Mark | None:
    """The class's own mark; None if somebody copied it from another class with the description."""
    return Mark.own(found.description, f"vm_class/{name}")


def _settings(spec: Spec, mark: Mark, state: State | None) -> vm_classes.VmClass:
    now, was = (state.settings.description, state.mark) if state else (None, None)
    storage = spec.instance_storage
    return vm_classes.VmClass(
        spec.cpus,
        spec.memory,
        spec.cpu_reservation,
        spec.memory_reservation,
        compare.description(spec, now, mark.committed(spec.applied()), was),
        tuple(sorted(spec.vgpus)),
        tuple(sorted(vm_classes.one_of(each.models, each.label) for each in spec.devices)),
        tuple(sorted(spec.device_groups)),
        ClassStorage(storage.policy, tuple(sorted(storage.volumes))) if storage else None,
    )


def _view(settings: vm_classes.VmClass) -> dict[str, Any]:
    """The settings as a site writes them."""
    cards = [
        {
            **_model(d.vendor, d.device),
            **({"label": d.label} if d.label else {}),
            **({"alternatives": [_model(*each) for each in d.alternatives]} if d.alternatives else {}),
        }
        for d in settings.devices
    ]
    return {
        "cpus": settings.cpus,
        "memory": bytes_text(settings.memory),
        "cpu_reservation": settings.cpu_reservation,
        "memory_reservation": settings.memory_reservation,
        "description": above(settings.description),
        "vgpus": list(settings.vgpus),
        "devices": cards,
        "device_groups": list(settings.groups),
        "instance_storage": {
            "policy": settings.storage.policy,
            "volumes": [bytes_text(each) for each in settings.storage.volumes],
        }
        if settings.storage
        else None,
    }


def _model(vendor: int, device: int) -> dict[str, str]:
    return {"vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}"}


def _sets(spec: Spec, state: State, field: str) -> bool:
    """Return whether the site sets this field, or has set it."""
    return field in spec.model_fields_set or field in ((state.mark.applied or {}) if state.mark else {})
