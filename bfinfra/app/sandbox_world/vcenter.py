"""The vCenter that a site expects: hosts with their cards, clusters, datastores, policies, supervisors."""

from __future__ import annotations

from typing import Any

from bfinfra import kinds as registry
from bfinfra.app.sandbox_world.draft import GPU, Draft, Entry, Hex
from bfinfra.model.gpus import GIB, vgpu_profile
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
    _cards(draft)
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


def _cards(draft: Draft) -> None:
    """The cards that the site passes through, names by their address, or wants for its servers."""
    wanted: dict[str, int] = {}
    for _, spec in draft.of("bitfusion_server"):
        wanted[spec.host] = wanted.get(spec.host, 0) + spec.gpus
    for key, spec in draft.of("gpu_host"):
        for each in spec.passthrough:
            if each.address:
                _put(draft, key.name, GPU, 1, each.address)
            else:
                number = max(each.count, wanted.pop(key.name, 0))
                _put(draft, key.name, _card(each.vendor, each.device), number)
    for host, number in wanted.items():
        _put(draft, host, GPU, number - len(draft.host(host).get("pci", ())))
    _other_cards(draft)


def _other_cards(draft: Draft) -> None:
    """Those that graphics settings name by their addresses, and one for each make that a VM class takes."""
    for _, spec in draft.of("host_graphics"):
        for host in spec.hosts:
            for address in spec.cards:
                _put(draft, host, {**GPU, "sriov": True}, 1, address)
    _cards_of_machines(draft)
    shared = dict.fromkeys(profile for _, spec in draft.of("vm_class") for profile in spec.vgpus)
    hosts = [host for _, spec in draft.of("host_graphics") for host in spec.hosts]
    for host in hosts:
        for profile in shared:
            _put(draft, host, _shared_card(profile), 1)
    if shared and not hosts:
        _shared(draft, list(shared))
    for _, spec in draft.of("vm_class"):
        for each in spec.devices:
            _put(draft, next(iter(draft.hosts), "esx1.sandbox.test"), _card(each.vendor, each.device), 1)


def _cards_of_machines(draft: Draft) -> None:
    """A shared card for each vGPU of a virtual machine, on its host."""
    for _, spec in draft.of("virtual_machine"):
        name = spec.host or "gpu1.sandbox.test"
        for profile in spec.vgpus:
            host = draft.host(name, spec.cluster)
            if not any(draft.of("host_graphics")):
                host["graphics"] = "sharedDirect"
            _put(draft, name, _shared_card(profile), 1)


def _shared(draft: Draft, profiles: list[str]) -> None:
    """A host in each cluster with namespaces that already shares a card for each of these profiles."""
    clusters = dict.fromkeys(spec.cluster for _, spec in draft.of("supervisor_namespace"))
    for number, cluster in enumerate(clusters, 1):
        host = f"gpu{number}.sandbox.test"
        draft.host(host, cluster)["graphics"] = "sharedDirect"
        for profile in profiles:
            _put(draft, host, _shared_card(profile), 1)


def _shared_card(profile: str) -> Entry:
    """A card with room for two machines of this vGPU profile."""
    found = vgpu_profile(profile)
    size = max(16, found.memory // GIB if found else 0)
    return {**GPU, "memory": f"{2 * size}GiB", "profiles": [profile]}


def _card(vendor: int, device: int) -> Entry:
    name = GPU["name"] if device == GPU["device"] else f"a card {device:04x}"
    return {**GPU, "vendor": Hex(vendor), "device": Hex(device), "name": name}


def _put(draft: Draft, host: str, card: Entry, number: int, address: str = "") -> None:
    cards = draft.host(host).setdefault("pci", [])
    for _ in range(number):
        at = address or f"0000:{0x3B + len(cards):02x}:00.0"
        if all(each["id"] != at for each in cards):
            cards.append({"id": at, "class": Hex(0x0302), **card})


def _release(version: str) -> str:
    """A whole release's name: `v1.23` → `v1.23.8+vmware.1-tkg.1`."""
    if "+" in version:
        return version
    number = version if version.count(".") > 1 else f"{version}.8"
    return f"{number}+vmware.1-tkg.1"
