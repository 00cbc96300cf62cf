"""Supervisor namespaces over REST, with names instead of ids. Source: com.vmware.vcenter.namespaces
(vmware-vcenter 9.1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.vcenter import zones
from bfinfra.backends.vcenter.places import meant
from bfinfra.backends.vcenter.vm_classes import VmClass, VmClasses
from bfinfra.model.errors import Malformed, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.client import VCenter

INSTANCES = "/api/vcenter/namespaces/instances"
BY_SUPERVISOR = "/api/vcenter/namespaces/instances/v2"
SUPERVISORS = "/api/vcenter/namespace-management/clusters"
POLICIES = "/api/vcenter/storage/policies"
LIBRARIES = "/api/content/library"
Json = dict[str, Any]
Answer = Mapping[str, Any]
MIB = 2**20
LISTS = ("storage", "access", "vm_classes", "content_libraries")
"""The lists of a namespace, by their names in a site."""
AT_ONCE = 8  # details read in parallel: the API has no bulk form


@dataclass(frozen=True, slots=True)
class Supervisor:
    """`cluster`: id of the vSphere cluster; `endpoint`: address of its Kubernetes API, or ""."""

    cluster: str
    endpoint: str
    running: bool


@dataclass(frozen=True, slots=True)
class Catalog:
    """The objects to which a namespace may refer: supervisors by what the site calls their clusters, policies
    and libraries by name → id, VM classes by name. `zones`: whether namespaces have zones here, from 9.0.
    """

    supervisors: Mapping[str, Supervisor] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    vm_classes: Mapping[str, VmClass] = field(default_factory=dict)
    zones: bool = False


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A grant of access: `account` is name@domain; `role` is view, edit or owner."""

    account: str
    group: bool
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a namespace. `cpu` in MHz, memory and storage in bytes; None: no limit."""

    description: str = ""
    cpu: int | None = None
    memory: int | None = None
    total_storage: int | None = None
    storage: Mapping[str, int | None] = field(default_factory=dict)
    access: tuple[Grant, ...] = ()
    vm_classes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    reserved: Mapping[str, int] = field(default_factory=dict)
    """VM class → how many of its VMs each zone keeps free. Written, and never read: the API doesn't tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """One namespace. `status`: CONFIGURING, RUNNING, REMOVING or ERROR; `cluster`: what a site calls it;
    `creator`: name@domain or "".
    """

    name: str
    status: str
    messages: tuple[str, ...]
    cluster: str
    endpoint: str
    creator: str
    settings: Settings


class Namespaces:
    """The namespaces of one vCenter. Raises RemoteError."""

    def __init__(self, vcenter: VCenter) -> None:
        self._vcenter = vcenter
        self._rest = vcenter.rest
        self._server = vcenter.server

    def catalog(self, clusters: Iterable[str] = ()) -> Catalog:
        """Return the objects to which a namespace may refer: four lists, and the details of each
        supervisor. `clusters`: the names and paths of clusters that the site uses.
        """
        texts, names = [*clusters], {s["cluster"]: s["cluster_name"] for s in self._list(SUPERVISORS)}
        details = {moid: self._object(f"{SUPERVISORS}/{quote(moid)}") for moid in names}
        supervisors = {
            text: Supervisor(
                each.moid,
                details[each.moid].get("api_server_cluster_endpoint", ""),
                details[each.moid].get("config_status") == "RUNNING",
            )
            for text, each in meant(self._vcenter.inventory.clusters(names, texts), texts).items()
        }
        libraries = (self._object(f"{LIBRARIES}/{quote(identity)}") for identity in self._libraries())
        return Catalog(
            supervisors,
            {p["name"]: p["policy"] for p in self._list(POLICIES)},
            {lib["name"]: lib["id"] for lib in libraries},
            VmClasses(self._vcenter).list(),
            zones.served(self._vcenter.about()[1]),
        )

    def list(self) -> Mapping[str, str]:
        """Every namespace's name → description, in one read."""
        return {s["namespace"]: s.get("description") or "" for s in self._list(INSTANCES)}

    def details(self, names: Iterable[str], catalog: Catalog) -> Mapping[str, Namespace]:
        """These namespaces in detail; those deleted meanwhile are left out."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda name: self._details(name, catalog), names)
            return {namespace.name: namespace for namespace in found if namespace is not None}

    def zones(self, clusters: Iterable[str], catalog: Catalog) -> Mapping[str, tuple[str, ...]]:
        """The zones of the supervisors on these clusters, by what the site calls them; {} before 9.0."""
        there = {name: catalog.supervisors[name] for name in clusters if name in catalog.supervisors}
        return (
            {name: zones.of_supervisor(self._rest, each.cluster) for name, each in there.items()}
            if catalog.zones
            else {}
        )

    def create(self, name: str, cluster: str, settings: Settings) -> None:
        """Start to create a namespace; it is CONFIGURING until it runs."""
        catalog = self.catalog([cluster])
        home = catalog.supervisors[cluster].cluster
        quota = {limit: value for limit, value in _quota(settings, _every).items() if value is not True}
        body = {
            "namespace": name,
            "description": settings.description,
            "resource_spec": quota,
            "storage_specs": _storage(settings, catalog, {}),
            "access_list": _access(settings, {}),
            "vm_service_spec": _machines(settings, catalog, _every),
            **_zones(settings, reserved=True),
        }
        if settings.zones:
            self._rest.post(BY_SUPERVISOR, {**body, "supervisor": zones.supervisor(self._rest, home)})
        else:
            self._rest.post(INSTANCES, {**body, "cluster": home})

    def update(self, name: str, settings: Settings, writes: Callable[[str], bool]) -> None:
        """Set the description, and the fields of which `writes` says so, by their names in a site; None
        removes a limit. All others stay, and so does what no site can say of a grant or a storage policy.
        """
        body = self._changed(name, settings, writes)
        self._rest.patch(f"{INSTANCES}/{quote(name)}", {"description": settings.description, **body})
        for zone in zones.of_namespace(self._rest, name) if settings.zones and writes("zones") else ():
            if zone not in settings.zones:
                zones.remove(self._rest, name, zone)

    def _changed(self, name: str, settings: Settings, writes: Callable[[str], bool]) -> Json:
        """The fields to write. Lists are sent whole, so they are merged into what is there."""
        body: Json = {}
        if quota := _quota(settings, writes):
            body["resource_spec"] = quota
        if writes("zones") or writes("reserved"):
            body |= _zones(settings, reserved=writes("reserved"))
        if any(map(writes, LISTS)):
            now, catalog = self._object(f"{INSTANCES}/{quote(name)}"), self.catalog()
            if writes("storage"):
                body["storage_specs"] = _storage(settings, catalog, now)
            if writes("access"):
                body["access_list"] = _access(settings, now)
            if machines := _machines(settings, catalog, writes):
                body["vm_service_spec"] = {**(now.get("vm_service_spec") or {}), **machines}
        return body

    def delete(self, name: str) -> None:
        """Start to delete a namespace and its contents. One that is already gone is fine."""
        try:
            self._rest.delete(f"{INSTANCES}/{quote(name)}")
        except Missing:
            return

    def _libraries(self) -> Any:
        try:
            return self._list(LIBRARIES)
        except Missing:
            return []

    def _list(self, path: str) -> Any:
        found = self._rest.get(path)
        if not isinstance(found, list):
            raise Malformed(f"GET {path} answered no list", server=self._server, why=type(found).__name__)
        return found

    def _object(self, path: str) -> Answer:
        found = self._rest.get(path)
        if not isinstance(found, dict):
            raise Malformed(f"GET {path} answered no object", server=self._server, why=type(found).__name__)
        return found

    def _details(self, name: str, catalog: Catalog) -> Namespace | None:
        try:
            there = zones.of_namespace(self._rest, name) if catalog.zones else ()
            return _namespace(name, self._rest.get(f"{INSTANCES}/{quote(name)}"), catalog, there)
        except Missing:
            return None
        except (KeyError, TypeError, AttributeError) as error:
            raise Malformed(
                f"namespace {name} can't be understood", server=self._server, why=repr(error)
            ) from None


def _namespace(name: str, info: Answer, catalog: Catalog, there: tuple[str, ...]) -> Namespace:
    names = {identity: text for text, identity in (*catalog.policies.items(), *catalog.libraries.items())}
    cluster = next(
        (text for text, s in catalog.supervisors.items() if s.cluster == info["cluster"]), info["cluster"]
    )
    supervisor = catalog.supervisors.get(cluster)
    quota, vm_service, creator = (
        info.get("resource_spec") or {},
        info.get("vm_service_spec") or {},
        info.get("creator") or {},
    )
    settings = Settings(
        description=info.get("description") or "",
        cpu=quota.get("cpu_limit"),
        memory=_bytes(quota.get("memory_limit")),
        total_storage=_bytes(quota.get("storage_request_limit")),
        storage={
            names.get(s["policy"], s["policy"]): _bytes(s.get("limit"))
            for s in info.get("storage_specs") or ()
        },
        access=tuple(
            sorted(
                Grant(f"{a['subject']}@{a['domain']}", a["subject_type"] == "GROUP", a["role"].lower())
                for a in info.get("access_list") or ()
            )
        ),
        vm_classes=tuple(sorted(vm_service.get("vm_classes") or ())),
        libraries=tuple(sorted(names.get(i, i) for i in vm_service.get("content_libraries") or ())),
        zones=there,
    )
    messages = tuple(
        m.get("details", {}).get("default_message", "")
        for m in info.get("messages") or ()
        if m.get("severity") != "INFO"
    )
    return Namespace(
        name=name,
        status=info["config_status"],
        messages=messages,
        cluster=cluster,
        settings=settings,
        endpoint=supervisor.endpoint if supervisor else "",
        creator=f"{creator['subject']}@{creator['domain']}" if creator else "",
    )


def _every(_: str) -> bool:
    return True


def _storage(settings: Settings, catalog: Catalog, now: Answer) -> list[Json]:
    """The desired policies, each with what else is in the one that is there. `now`: the namespace as it is,
    {} for a new one.
    """
    there = {each["policy"]: each for each in now.get("storage_specs") or ()}
    wanted = ((catalog.policies[name], limit) for name, limit in settings.storage.items())
    return [_limited(there.get(policy, {"policy": policy}), limit) for policy, limit in wanted]


def _limited(policy: Answer, limit: int | None) -> Json:
    kept = {name: value for name, value in policy.items() if name != "limit"}
    return kept if limit is None else {**kept, "limit": limit // MIB}


def _access(settings: Settings, now: Answer) -> list[Json]:
    """The desired grants, each with what else is in the one that is there, such as its identity provider; and
    those that vCenter gave the creator.
    """
    there: dict[tuple[str, ...], list[Json]] = {}
    for each in now.get("access_list") or ():
        there.setdefault(_subject(each), []).append(each)
    creator = (now.get("creator") or {"subject": "", "domain": ""}).items()
    own = {subject for subject, found in there.items() if any(creator <= each.items() for each in found)}
    grants = [_grant(each) for each in settings.access]
    merged = [{**each, **grant} for grant in grants for each in there.get(_subject(grant), [{}])]
    return merged + [each for subject in own - {*map(_subject, grants)} for each in there[subject]]


def _subject(grant: Answer) -> tuple[str, ...]:
    """Who is granted, as vCenter compares names."""
    return (grant["subject_type"], grant["subject"].lower(), grant["domain"].lower())


def _machines(
    settings: Settings, catalog: Catalog, writes: Callable[[str], bool]
) -> dict[str, Sequence[str]]:
    """What the namespace's VMs may use: those lists that are written."""
    found = {
        "vm_classes": list(settings.vm_classes),
        "content_libraries": [catalog.libraries[name] for name in settings.libraries],
    }
    return {name: value for name, value in found.items() if writes(name)}


def _zones(settings: Settings, *, reserved: bool) -> Json:
    found = [{"reserved_vm_class": each, "count": count} for each, count in settings.reserved.items()]
    more = {"vm_reservations": found} if reserved else {}
    return {"zones": [{"name": each, **more} for each in settings.zones]} if settings.zones else {}


def _grant(grant: Grant) -> dict[str, str]:
    subject, _, domain = grant.account.rpartition("@")
    return {
        "subject_type": "GROUP" if grant.group else "USER",
        "subject": subject,
        "domain": domain,
        "role": grant.role.upper(),
    }


def _quota(settings: Settings, writes: Callable[[str], bool]) -> dict[str, int | bool]:
    """The limits to write; one that is to go is unset."""
    limits = {
        "cpu": ("cpu_limit", settings.cpu),
        "memory": ("memory_limit", settings.memory and settings.memory // MIB),
        "storage": ("storage_request_limit", settings.total_storage and settings.total_storage // MIB),
    }
    return {
        (f"{name}_unset" if value is None else name): True if value is None else value
        for field, (name, value) in limits.items()
        if writes(f"limits.{field}")
    }


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib * MIB
