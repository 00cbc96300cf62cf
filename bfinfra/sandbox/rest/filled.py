"""The REST API's records as the world file describes them: filled, restored, reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest import enabling, namespaces, registries
from bfinfra.sandbox.rest.content import library_of
from bfinfra.sandbox.rest.published import items_of
from bfinfra.sandbox.rest.state import KEPT, SAVED, Records, RestState
from bfinfra.sandbox.rest.tagging import tagged
from bfinfra.sandbox.rest.vm_classes import class_of

if TYPE_CHECKING:
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.faults import Faults
    from bfinfra.sandbox.inventory import Inventory
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.world import World


class FilledRestState(RestState):
    """The records at the start, as the world file describes them."""

    def __init__(self, world: World, inventory: Inventory, clock: Clock, pki: Pki, faults: Faults) -> None:
        super().__init__(world, inventory, clock, pki, faults)
        self._fill()

    def _fill(self) -> None:
        for name in KEPT:
            setattr(self, name, Records())
        self.vm_classes |= {name: class_of(name, each) for name, each in self.world.vm_classes.items()}
        made = [library_of(self.inventory, name, each) for name, each in self.world.content_libraries.items()]
        self.libraries |= {each["id"]: each for each in made}
        for each in made:
            self.items |= items_of(each, self.inventory)
        categories, tags, attached = tagged(self.inventory)
        self.categories |= categories
        self.tags |= tags
        self.attached |= attached

    def restore(self, data: dict[str, Any]) -> None:
        """Load what `save` returned; work in progress continues."""
        with self.lock:
            for name in SAVED:
                setattr(self, name, Records(data.get(name, {})))  # an older state has fewer
        for cluster in list(self.enabled):
            enabling.resume(self, cluster)
        for registry in list(self.registries):
            registries.resume(self, registry)
        for name in list(self.namespaces):
            namespaces.resume(self, name)

    def reset(self) -> None:
        """Reset it to what the world file describes."""
        with self.lock:
            gone, enabled = list(self.namespaces), list(self.enabled)
            self._fill()
        for name in gone:
            self.notify(name)
        for cluster in enabled:
            self.notify_supervisor(cluster)
