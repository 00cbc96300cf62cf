"""A VM class: the CPUs, memory and GPUs of a VM in a namespace. (The solution: VMware Kubernetes platforms on
a GPU cluster.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from bfinfra.backends.vcenter import vm_classes
from bfinfra.backends.vcenter.vm_classes import VmClasses
from bfinfra.kinds.capabilities import vm_class
from bfinfra.model import compare, kind, resource
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import FieldError
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.order import Capability, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Part
from bfinfra.model.rights import READ, ROOT, VCENTER, PrivilegePlaces, Use, holds
from bfinfra.model.step import Step
from bfinfra.model.units import Bytes, PciId, bytes_text

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

MIB = 2**20
SMALLEST = 512 * MIB
MANAGE = holds("classes", "VirtualMachineClasses.Manage")
PerCent = Annotated[int, Field(ge=0, le=100)]


def _whole(number: int) -> int:
    if number < SMALLEST or number % MIB:
        raise ValueError("the memory of a VM class is at least 512MiB, in whole MiB")
    return number


class Card(Part):
    """A PCI device that vSphere picks from the free ones of its hosts (dynamic DirectPath I/O)."""

    vendor: PciId
    """PCI vendor id, such as 0x10de."""
    device: PciId
    """PCI device id, such as 0x1db6."""
    label: str = ""
    """Take only cards with this hardware label."""


class Spec(resource.Spec):
    """What a user writes for one VM class."""

    name_pattern = DNS_LABEL
    name_rule = DNS_LABEL_RULE

    cpus: Annotated[int, Field(ge=1)]
    """Virtual CPUs."""
    memory: Annotated[Bytes, AfterValidator(_whole)]
    """Memory, such as 64GiB."""
    cpu_reservation: PerCent = 0
    """How much of its CPUs is guaranteed, in per cent."""
    memory_reservation: PerCent = 0
    """How much of its memory is guaranteed, in per cent; 100 with any GPU."""
    description: str = ""
    """Free text. bfinfra writes its mark in a last line below it."""
    vgpus: tuple[str, ...] = ()
    """vGPU profiles, one per virtual GPU, such as grid_v100d-16c."""
    devices: tuple[Card, ...] = ()
    """Whole cards, one entry per card."""

    @model_validator(mode="after")
    def _reserved(self) -> Spec:
        if (self.vgpus or self.devices) and self.memory_reservation != 100:
            raise FieldError(
                "100 is needed with vgpus or devices: the memory of a VM with a GPU can't be swapped",
                "memory_reservation",
                "write memory_reservation: 100",
            )
        return self

    def provides(self, name: str, site: Specs) -> Iterator[Capability]:
        """The class."""
        yield vm_class(name)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """What vCenter reports."""

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
    step_types = (Create, Update, Delete)
    survey_privileges = (holds(VCENTER, *READ),)

    def __init__(self, vcenter: VCenter) -> None:
        self._classes = VmClasses(vcenter.rest)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the list of classes."""
        found = {
            name: State(mark=_mark(name, each), settings=each) for name, each in self._classes.list().items()
        }
        return Observation(
            {
                name: state
                for name, state in found.items()
                if name in wanted or (include_unlisted and state.mark)
            }
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every class, with vCenter's own."""
        for name, each in sorted(self._classes.list().items()):
            yield Description(name, _view(each), State(mark=_mark(name, each), settings=each))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """Creates, changes or deletes it, in one step."""
        if spec is None:
            return () if state is None else (Delete(name=name),)
        settings = _settings(spec, context.mark)
        if state is None:
            return (Create(name=name, settings=settings, changes=compare.differences(None, spec.applied())),)
        found = compare.changes(spec, state.mark, _drift(spec, state, settings))
        return (Update(name=name, settings=settings, changes=found),) if found else ()

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: None) -> Iterator[Conflict]:
        """Classes to delete that namespaces of others offer. vCenter refuses that, as their clusters create
        nodes from them.
        """
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
                self._classes.create(name, settings)
            case Update(name=name, settings=settings):
                self._classes.update(name, settings)
            case Delete(name=name):
                self._classes.delete(name)


def _counted(namespaces: Sequence[str]) -> str:
    return (
        f"the namespace {namespaces[0]} offers"
        if len(namespaces) == 1
        else f"the namespaces {', '.join(namespaces)} offer"
    )


def _mark(name: str, found: vm_classes.VmClass) -> Mark | None:
    """The class's own mark; None if somebody copied it from another class with the description."""
    return Mark.own(found.description, f"vm_class/{name}")


def _settings(spec: Spec, mark: Mark) -> vm_classes.VmClass:
    return vm_classes.VmClass(
        spec.cpus,
        spec.memory,
        spec.cpu_reservation,
        spec.memory_reservation,
        below(spec.description, mark.committed(spec.applied())),
        tuple(sorted(spec.vgpus)),
        tuple(sorted(vm_classes.Device(each.vendor, each.device, each.label) for each in spec.devices)),
    )


def _view(settings: vm_classes.VmClass) -> dict[str, Any]:
    """The settings as a site writes them."""
    cards = [
        {
            "vendor": f"0x{d.vendor:04x}",
            "device": f"0x{d.device:04x}",
            **({"label": d.label} if d.label else {}),
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
    }


def _drift(spec: Spec, state: State, wanted: vm_classes.VmClass) -> Sequence[Change]:
    """The differences between the live class and the site, in the fields that the site sets or has set."""
    managed = spec.model_fields_set | set((state.mark.applied or {}) if state.mark else {})
    return [
        change
        for change in compare.differences(_view(state.settings), _view(wanted))
        if change.field.partition(".")[0] in managed
    ]
