"""The vCenter that a site expects: hosts with their cards, clusters, datastores, policies, supervisors."""

from __future__ import annotations

from typing import Any

from bfinfra import kinds as registry
from bfinfra.app.sandbox_world import cards
from bfinfra.app.sandbox_world.draft import Draft, Entry
from bfinfra.model.refs import Key
from bfinfra.sandbox.sessions import full_name

SUBSCRIBED = "https://wp-content.vmware.com/v2/latest/lib.json"
SIZES = {"xsmall": (2, 2), "small": (2, 4), "medium": (2, 8), "large": (4, 16), "xlarge": (4, 32)}
SIZES |= {"2xlarge": (8, 64), "4xlarge": (16, 128), "8xlarge": (32, 128)}
"""CPUs and GiB of the classes that vSphere brings."""


def add(draft: Draft) -> None:
    """Add the vCenter and its objects to the world."""
    _account(draft)
    for key, spec in draft.of(*registry.names("vcenter", "supervisor")):
        _clusters(draft, key, spec)
        _stores(draft, spec)
    for edge in draft.outside():
        _outside(draft, edge.keys[0].kind, edge.name)
    for number, name in enumerate(dict.fromkeys(_supervisors(draft)), 1):
        _supervisor(draft, name, number)
    cards.add(draft)
    for _, spec in draft.of("storage_policy"):
        for category, tags in spec.tags.items():
            for tag in tags:
                draft.part("tags", category, {})[tag] = [draft.store()]
    releases = dict.fromkeys(_release(spec.version) for _, spec in draft.of("tanzu_cluster"))
    if releases:
        draft.parts["tanzu_releases"] = list(releases)
    _classes(draft)
    _images(draft)
    _components(draft)
    _zones(draft)
    _people(draft)


def _components(draft: Draft) -> None:
    """Clusters with images, and the depots of their components."""
    for key, spec in draft.of("host_image"):
        draft.cluster(spec.cluster)["image"] = {}
        url = spec.depot.url if spec.depot else f"https://depots.sandbox.test/{key.name}.zip"
        for name, version in spec.components.items():
            draft.part("depots", url, {}).setdefault(name, []).append(version)


def _zones(draft: Draft) -> None:
    """The zones in which supervisors are enabled, the first that of their cluster, and those of supervisors
    whose namespaces name some.
    """
    for key, spec in draft.of("supervisor"):
        for n, zone in enumerate(spec.enable.zones if spec.enable else ()):
            draft.cluster(zone if n else key.name).setdefault("zone", zone)
    for _, spec in draft.of("supervisor_namespace"):
        supervisor = draft.cluster(spec.cluster).get("supervisor")
        if spec.zones and supervisor is not None:
            supervisor["zones"] = sorted({*supervisor.get("zones", ()), *spec.zones})


def _classes(draft: Draft) -> None:
    """Releases of the vSphere Kubernetes Service, and the classes that make clusters of them."""
    clusters = [spec for _, spec in draft.of("vks_cluster")]
    if not clusters:
        return
    releases = dict.fromkeys(_numbered(_release(spec.version)) for spec in clusters)
    minors = sorted({".".join(each.split(".")[:2]) for each in releases}, key=lambda each: int(each[3:]))
    classes = sorted({spec.cluster_class for spec in clusters})
    draft.parts["vks"] = {
        "releases": list(releases),
        "classes": {name: [minors[0], minors[-1]] for name in classes},
    }


def _images(draft: Draft) -> None:
    """Items of the libraries that machines are made of, with what a machine of each listens on."""
    followed = {
        key.name: spec.subscription.url for key, spec in draft.of("content_library") if spec.subscription
    }
    for _, spec in draft.of("service_vm"):
        library, ports = spec.image.library, {*spec.expose, *([spec.ready.tcp] if spec.ready else ())}
        url = followed.get(library, f"https://libraries.sandbox.test/{library}/lib.json")
        if library in draft.parts.get("content_libraries", {}):
            draft.parts["content_libraries"][library]["url"] = url
        elif library not in followed:
            draft.left_out[f"content_library/{library}"] = (
                "a local library has only what the site puts into it"
            )
        listens = draft.part("published", url, {}).setdefault(spec.image.item, [])
        listens += sorted(ports - set(listens))


def _numbered(release: str) -> str:
    """With the number that releases of the service have: `v1.34.8+vmware.1-vkr.1`."""
    return release if "-vkr." in release else f"{release.partition('-tkg')[0]}-vkr.1"


def _people(draft: Draft) -> None:
    """Users and groups that namespaces let in."""
    for _, spec in draft.of("supervisor_namespace"):
        for access in spec.access:
            if access.group:
                draft.groups[access.group] = None
            else:
                draft.users.setdefault(access.user, {"password": {"generate": "password"}})


def _account(draft: Draft) -> None:
    """The administrator that the site logs in as."""
    settings = draft.site.vcenter
    name = (settings and settings.username) or "administrator@vsphere.local"
    password: Entry = {"generate": "password"}
    if settings and settings.password:
        if settings.password.way == "env":
            password = {"env": settings.password.target}
        else:
            draft.left_out["vcenter.password"] = (
                f"the sandbox can't give {settings.password}: name an environment variable for it"
            )
    if settings and settings.trust.sha256:
        draft.left_out["vcenter.trust"] = (
            "the sandbox has another certificate; in an overlay for it, write vcenter: {trust: null}"
        )
    draft.users[full_name(name)] = {"password": password, "role": "admin"}


def _clusters(draft: Draft, key: Key, spec: Any) -> None:
    """The clusters and hosts that a resource is on."""
    cluster = None if key.kind == "vks_addon" else getattr(spec, "cluster", None)
    if key.kind == "gpu_host":
        draft.host(key.name, cluster)
    elif cluster or key.kind == "supervisor":
        draft.cluster(cluster or key.name)
    for each in getattr(spec, "clusters", ()):
        draft.cluster(each)
    if host := getattr(spec, "host", None):
        draft.host(host, cluster)
    for each in getattr(spec, "hosts", ()):
        draft.host(each)
    if key.kind == "supervisor" and spec.enable and spec.enable.nsx:
        draft.left_out[f"{key}: enable.nsx"] = "a world has no switch but those that the site makes"


def _stores(draft: Draft, spec: Any) -> None:
    """The datastores and templates that a resource is on."""
    stores = (getattr(spec, "datastore", None), getattr(getattr(spec, "library", None), "datastore", None))
    draft.datastores |= dict.fromkeys(filter(None, stores))
    if template := getattr(spec, "template", None):
        draft.part("templates", template, {"cluster": spec.cluster, "datastore": spec.datastore})


def _outside(draft: Draft, kind: str, name: str) -> None:
    """Add what exists without the site."""
    if kind == "port_group":
        draft.networks[name] = None
    elif kind == "storage_policy":
        draft.part("storage_policies", name, {"datastores": [draft.store()]})
    elif kind == "vm_class":
        size = name.removeprefix("best-effort-").removeprefix("guaranteed-")
        cpus, memory = SIZES.get(size, (4, 16))
        reserved = (
            {"cpu_reservation": 100, "memory_reservation": 100} if name.startswith("guaranteed-") else {}
        )
        draft.part("vm_classes", name, {"cpus": cpus, "memory": f"{memory}GiB", **reserved})
    elif kind == "content_library":
        draft.part("content_libraries", name, {"datastore": draft.store()})
    elif kind in ("distributed_switch", "resource_pool"):
        draft.left_out[f"{kind}/{name}"] = "a world has none: write it into the site"


def _supervisors(draft: Draft) -> list[str]:
    """The clusters on which vSphere with Tanzu runs before the site does anything."""
    enabled = {key.name for key, spec in draft.of("supervisor") if spec.enable}
    named = [spec.cluster for _, spec in draft.of("supervisor_namespace", "registry")]
    named += [key.name for key, _ in draft.of("supervisor")]
    return [name for name in named if name not in enabled]


def _supervisor(draft: Draft, name: str, number: int) -> None:
    net = f"10.21{number}.0" if number < 3 else f"10.22{number}.0"
    cluster = draft.cluster(name)
    cluster["content"] = ["tanzu-releases"]
    cluster["supervisor"] = {
        "address": f"{net}.1",
        "guests": [f"{net}.10", f"{net}.60"],
        "registry": f"{net}.3",
    }
    draft.part("content_libraries", "tanzu-releases", {"datastore": draft.store(), "url": SUBSCRIBED})


def _release(version: str) -> str:
    """A whole release's name: `v1.23` → `v1.23.8+vmware.1-tkg.1`."""
    if "+" in version:
        return version
    number = version if version.count(".") > 1 else f"{version}.8"
    return f"{number}+vmware.1-tkg.1"
