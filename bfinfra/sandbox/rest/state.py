"""The REST API's state beside the inventory: namespaces, VM classes, content libraries, tags."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from bfinfra.sandbox.rest.enabled import supervisor_of
from bfinfra.sandbox.world import StoragePolicy

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.faults import Faults
    from bfinfra.sandbox.inventory import Inventory, Managed
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.world import World
    from bfinfra.sandbox.world_hosts import Supervisor

Info = dict[str, Any]
T = TypeVar("T")
SAVED = (
    "namespaces",
    "vm_classes",
    "libraries",
    "items",
    "categories",
    "tags",
    "attached",
    "profiles",
    "enabled",
    "settings",
    "registries",
    "images",
    "depots",
    "drafts",
)


KEPT = (*SAVED, "sessions", "scans", "tasks")
"""All records; the last of them a restart forgets."""


class Records(dict[str, T]):
    """Records by id. Going through them sees those of one moment: a request that reads holds no lock, and
    others come and go meanwhile.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(dict.copy(self))

    def items(self) -> dict_items[str, T]:
        """Ids and records, as they are now."""
        return dict.copy(self).items()

    def values(self) -> dict_values[str, T]:
        """Records, as they are now."""
        return dict.copy(self).values()


class RestState:
    """Records by id, as the API's Info structures. Hold `lock` while changing any.

    `on_namespace(name, info)` is called when a namespace is RUNNING or was changed, with None when it is
    gone.
    """

    def __init__(self, world: World, inventory: Inventory, clock: Clock, pki: Pki, faults: Faults) -> None:
        self.world, self.inventory, self.clock, self.pki, self.faults = world, inventory, clock, pki, faults
        self.lock = threading.RLock()
        self._telling = (
            threading.RLock()
        )  # the hooks are called in the order of the changes; `lock` is free meanwhile
        self.namespaces: dict[str, Info] = Records()
        self.vm_classes: dict[str, Info] = Records()
        self.libraries: dict[str, Info] = Records()
        self.items: dict[str, Info] = Records()
        self.sessions: dict[str, Info] = Records()
        self.categories: dict[str, Info] = Records()
        self.tags: dict[str, Info] = Records()
        self.attached: dict[str, list[Info]] = Records()
        """Objects by the id of their tag: {"id": "vm-42", "type": "VirtualMachine"}."""
        self.profiles: dict[str, Info] = Records()
        """Storage policies that were created through the API, by id; `constraints` as XML."""
        self.enabled: dict[str, Info] = Records()
        """Supervisors that were enabled through the API, by the id of their cluster; those of the world file
        are not among them.
        """
        self.settings: dict[str, Info] = Records()
        """Changed settings of supervisors, by the id of the cluster."""
        self.registries: dict[str, Info] = Records()
        self.images: dict[str, Info] = Records()
        """Images that somebody changed, by the id of their cluster: components and commit."""
        self.depots: dict[str, Info] = Records()
        self.drafts: dict[str, Info] = Records()
        self.scans: dict[str, Info] = Records()
        """The last comparison of a cluster's hosts with its image; made anew after a restart."""
        self.tasks: dict[str, Info] = Records()
        """Tasks of REST operations; a restart forgets them."""
        self.supervisor_hooks: list[Callable[[str], None]] = []
        self.namespace_hooks: list[Callable[[str, Info | None], None]] = []
        self.class_hooks: list[Callable[[str, Info | None], None]] = []

    def policies(self) -> dict[str, tuple[str, StoragePolicy]]:
        """Storage policies by id: name and policy. For those created through the API, tags decide about
        datastores.
        """
        made = {
            identity: (each["name"], StoragePolicy(description=each["description"]))
            for identity, each in self.profiles.items()
        }
        return {
            self.inventory.new_uuid(f"policy {name}"): (name, each)
            for name, each in self.world.storage_policies.items()
        } | made

    def supervisors(self) -> dict[str, tuple[Managed, Supervisor]]:
        """Supervisors by the id of their cluster, whether they run or not yet."""
        found = {
            cluster.moid: (cluster, given.supervisor)
            for cluster in self.inventory.clusters()
            if (given := self.inventory.given(cluster)) is not None
        }
        made = {
            moid: (cluster, supervisor_of(each["spec"]))
            for moid, each in self.enabled.items()
            if (cluster := self.inventory.objects.get(moid)) is not None
        }
        return {
            moid: (cluster, supervisor)
            for moid, (cluster, supervisor) in {**found, **made}.items()
            if supervisor is not None
        }

    def notify(self, name: str) -> None:
        """Call the hooks with a namespace's present record."""
        with self._telling:
            with self.lock:
                info = copy.deepcopy(self.namespaces.get(name))
            for hook in self.namespace_hooks:
                hook(name, info)

    def notify_supervisor(self, cluster: str) -> None:
        """Call the hooks with a supervisor that runs now, or was removed."""
        with self._telling:
            for hook in self.supervisor_hooks:
                hook(cluster)

    def notify_class(self, name: str) -> None:
        """Call the hooks with a VM class's present record."""
        with self._telling:
            with self.lock:
                info = copy.deepcopy(self.vm_classes.get(name))
            for hook in self.class_hooks:
                hook(name, info)

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, as JSON values."""
        with self.lock:
            return {name: copy.deepcopy(getattr(self, name)) for name in SAVED}

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times: equal states dump equal."""
        with self.lock:
            names = {cluster.moid: cluster.name for cluster in self.inventory.clusters()}
            names |= {identity: name for identity, (name, _) in self.policies().items()}
            names |= {identity: each["name"] for identity, each in self.libraries.items()}
            libraries = {each["name"]: each for each in self.libraries.values()}
            items = {each["name"]: {**each, "files": sorted(each["files"])} for each in self.items.values()}
            found = {
                "namespaces": self.namespaces,
                "vm_classes": self.vm_classes,
                "libraries": libraries,
                "items": items,
                **self._tagging(),
                **self._profiles(),
                **self._enabling(),
                **self._imaging(),
            }
            return {name: _named(each, names) for name, each in found.items()}

    def _profiles(self) -> Info:
        """Policies that were created through the API, by name, to be saved; nothing if there are none."""
        return {"profiles": {each["name"]: each for each in self.profiles.values()}} if self.profiles else {}

    def _enabling(self) -> Info:
        """Supervisors that were enabled or changed, and registries by cluster; empty if there are none."""
        registries = {each["cluster"]: each for each in self.registries.values()}
        return {
            name: found
            for name, found in (
                ("enabled", self.enabled),
                ("settings", self.settings),
                ("registries", registries),
            )
            if found
        }

    def _imaging(self) -> Info:
        """Components that were added to images, depots and open drafts; empty if there are none."""
        images = {
            moid: each["components"]
            for moid, each in self.images.items()
            if (given := self.inventory.given(self.inventory.objects[moid])) is None
            or each["components"] != given.image
        }
        found = {
            "images": images,
            "depots": [each.get("location", "") for each in self.depots.values()],
            "drafts": [each["components"] for each in self.drafts.values()],
        }
        return {name: each for name, each in found.items() if each}

    def _tagging(self) -> Info:
        """Categories, their tags and what bears them, by name; nothing where there are none."""
        names = {identity: each["name"] for identity, each in self.categories.items()}
        found = {name: {**self.categories[identity], "tags": {}} for identity, name in names.items()}
        for identity, tag in self.tags.items():
            bearers = [
                self.inventory.objects[each["id"]].name
                for each in self.attached.get(identity, [])
                if each["id"] in self.inventory.objects
            ]
            found[names[tag["category_id"]]]["tags"][tag["name"]] = {
                "description": tag["description"],
                "on": sorted(bearers),
            }
        return {"categories": found} if found else {}


def _named(value: object, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        hidden = {
            "creation_time",
            "last_modified_time",
            "last_sync_time",
            "datastore_id",
            "id",
            "library_id",
            "template",
        }
        return {
            names.get(key, key): _named(each, names)
            for key, each in sorted(value.items())
            if key not in hidden
        }
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value
