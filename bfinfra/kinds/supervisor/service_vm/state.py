"""A machine and its parts as the supervisor reports them: conditions, power, disks, service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster_locator import Cluster
from bfinfra.kinds.supervisor.base.words import Fields, Object, at
from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.spec import Spec
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

AWAITED = (
    "VirtualMachineClassReady",
    "VirtualMachineImageReady",
    "VirtualMachineStorageReady",
    "VirtualMachineBootstrapReady",
    "VirtualMachineNetworkReady",
    "VirtualMachineConditionPlacementReady",
    "VirtualMachineCreated",
)
"""The conditions to wait for, in the order in which the VM Service sets them. It must report the last one."""


@dataclass(frozen=True)
class Claim:
    """A disk's claim. `maker`: site and address of its mark, None without one; `owner`: the machine that it
    is deleted with, "" if it is kept.
    """

    body: Fields
    maker: tuple[str, str] | None = None
    owner: str = ""
    going: bool = False
    metadata: Fields = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """`body`: the machine's spec as `api` writes it; `power`: its live power state, "" if unknown; `secret`:
    whether its Secret has the wanted content, None if it has none.
    """

    namespace: Annotated[str, Ref("supervisor_namespace")]
    api: str
    body: Fields
    uid: str
    home: Endpoint
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Type → status, and why."""
    power: str = ""
    has_class: str = ""
    """The VM class that it runs with; what is written is applied when it is off."""
    address: str = ""
    attached: Mapping[str, str] = field(default_factory=dict)
    """Volume → why it isn't attached, "" where it is."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """By disk."""
    secret: bool | None = None
    secret_uid: str = ""
    """Of a Secret that bears no mark."""
    service: Fields | None = None
    service_maker: tuple[str, str] | None = None
    ingress: str = ""
    metadata: Fields = field(default_factory=dict)
    """Its metadata, whose managedFields tell who wrote which field."""
    service_metadata: Fields = field(default_factory=dict)

    def answers_at(self) -> str:
        """Its service, else itself."""
        return self.ingress or self.address

    def out_of_service(self, spec: resource.Spec | None) -> str:
        """Return `is off` while it is, unless the site wants it off."""
        return "is off" if self.power == form.OFF and getattr(spec, "power", "on") == "on" else ""

    def has(self, maker: tuple[str, str] | None) -> bool:
        """Return whether a part with such a mark is this machine's: made for it, or as little marked as the
        machine while that is not adopted.
        """
        if maker is None:
            return self.mark is None or self.mark.applied is None
        return self.mark is not None and self.mark.owner == maker

    def view(self) -> Object:
        """Return the machine in the words of a site."""
        volumes = form.volumes(self.body)
        name = str(self.metadata.get("name"))
        disks = {
            disk: {
                **form.disk_view(claim.body),
                "keep": claim.owner != self.uid,
                "attached": volumes.get(disk) == form.claim_name(name, disk),
            }
            for disk, claim in self.claims.items()
            if self.has(claim.maker)
        }
        exposed = (
            form.ports(self.service) if self.service is not None and self.has(self.service_maker) else []
        )
        return {**form.view(self.body), "disks": disks, "expose": exposed}

    def missing(self, spec: Spec) -> str:
        """Return why it isn't through with what was last written; "" where it is."""
        return "being deleted" if self.going else next(self._lacks(spec), "")

    def _lacks(self, spec: Spec) -> Iterator[str]:
        for each in AWAITED:
            status, why = self.conditions.get(each, ("", ""))
            if status not in ("True", "") or (not status and each == AWAITED[-1]):
                yield f"{each}: {why or status or 'its status is not reported yet'}"
        asked = str(self.body.get("powerState") or "")
        if asked and self.power != asked:
            yield f"it is {self.power or 'not started'}, and shall be {asked}"
        for name in form.volumes(self.body):
            if why := self.attached.get(name, "it is not attached yet"):
                yield f"disk {name}: {why}"
        if at(self.body, "readinessProbe") and asked == form.ON:
            status, why = self.conditions.get("Ready", ("", "its status is not reported yet"))
            if status != "True":
                yield f"Ready: {why or status}"
        if spec.expose and self.service is not None and not self.ingress:
            yield "its service has no address yet"


def state_of(
    obj: Object,
    api: str,
    cluster: Cluster,
    parts: tuple[Sequence[Object], Object | None],
    *,
    secret: tuple[bool | None, Object | None],
) -> State:
    """From the objects. `parts`: its claims, and its service; `secret`: whether it has the wanted content,
    None for none, and its object.
    """
    (claims, service), (right, held) = parts, secret
    metadata, status = at(obj, "metadata"), at(obj, "status")
    name = str(metadata.get("name"))
    ingress = at(service, "status", "loadBalancer").get("ingress") if service else None
    first: Any = next(iter(ingress or ()), {})
    return State(
        mark=mark_of(obj),
        namespace=cluster.key.name,
        api=api,
        body=at(obj, "spec"),
        uid=str(metadata.get("uid")),
        home=cluster.endpoint,
        going=bool(metadata.get("deletionTimestamp")),
        conditions=_conditions(status.get("conditions")),
        power=str(status.get("powerState") or ""),
        has_class=_class(at(status, "class"), mark_of(obj)),
        address=safe(at(status, "network").get("primaryIP4") or "", 80),
        attached={
            str(each.get("name")): ""
            if each.get("attached")
            else safe(each.get("error") or "it is not attached yet", 200)
            for each in status.get("volumes") or ()
            if isinstance(each, dict)
        },
        claims=_claims(name, claims),
        secret=right,
        secret_uid=str(at(held, "metadata").get("uid", "")) if held and mark_of(held) is None else "",
        service=at(service, "spec") if service else None,
        service_maker=_maker(service) if service else None,
        ingress=safe(first.get("ip") or first.get("hostname") or "", 80) if isinstance(first, dict) else "",
        metadata=_known(metadata),
        service_metadata=_known(at(service, "metadata")) if service else {},
    )


def _class(given: Fields, mark: Mark | None) -> str:
    """Newer supervisors name an instance of the class instead: then it is the one that was applied."""
    if given.get("kind") == "VirtualMachineClass":
        return str(given.get("name") or "")
    return str(((mark.applied if mark else None) or {}).get("vm_class") or "")


def _known(metadata: Fields) -> Object:
    kept = {name: str(metadata.get(name) or "") for name in ("name", "uid")}
    return {**kept, "managedFields": metadata.get("managedFields") or []}


def _maker(obj: Object) -> tuple[str, str] | None:
    mark = mark_of(obj)
    return mark.owner if mark is not None else None


def _claims(name: str, claims: Sequence[Object]) -> dict[str, Claim]:
    found = {}
    for each in claims:
        metadata = at(each, "metadata")
        disk = str(metadata.get("name")).removeprefix(f"{name}-")
        owners = metadata.get("ownerReferences") or ()
        found[disk] = Claim(
            at(each, "spec"),
            _maker(each),
            owner=next((str(one.get("uid")) for one in owners if one.get("kind") == form.VM), ""),
            going=bool(metadata.get("deletionTimestamp")),
            metadata=_known(metadata),
        )
    return found


def _conditions(listed: Any) -> dict[str, tuple[str, str]]:
    return {
        str(each.get("type")): (
            str(each.get("status")),
            safe(" ".join(str(each.get("message") or each.get("reason") or "").split()), 200),
        )
        for each in listed or ()
        if isinstance(each, dict)
    }
