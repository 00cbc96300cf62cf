"""The vCenter of a site: one object for each run, which every kind that needs it gets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime

from bfinfra.backends import background
from bfinfra.backends.survey_cache import SurveyCache
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import attributes, identify, refs, roots
from bfinfra.backends.vcenter.capacity import Capacities
from bfinfra.backends.vcenter.cluster_notes import ClusterNotes
from bfinfra.backends.vcenter.connector import Connector
from bfinfra.backends.vcenter.directory import Directory
from bfinfra.backends.vcenter.events import Events
from bfinfra.backends.vcenter.host_settings import HostSettings
from bfinfra.backends.vcenter.hosts import Hosts
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.backends.vcenter.inventory import Inventories
from bfinfra.backends.vcenter.library import Libraries
from bfinfra.backends.vcenter.library_items import LibraryItems
from bfinfra.backends.vcenter.machines import Machines
from bfinfra.backends.vcenter.ovf import Imports
from bfinfra.backends.vcenter.rest import Rest
from bfinfra.backends.vcenter.rights import Grants
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.soap import service_instance
from bfinfra.backends.vcenter.switches import Switches
from bfinfra.backends.vcenter.tasks import Tasks
from bfinfra.backends.vcenter.vgpus import Vgpus
from bfinfra.backends.words import safe
from bfinfra.model.site import VCenterSettings


class VCenter:
    """SOAP and REST of one vCenter; sessions open when first needed. Always `close()` it."""

    def __init__(
        self,
        settings: VCenterSettings,
        transport: Transport,
        env: Mapping[str, str] | None = None,
        site: str = "",
        connector: Connector | None = None,
    ) -> None:
        self.settings = settings
        self.server = settings.server
        self.transport = transport
        self.session = SoapSession(settings, transport, env, site, connector)
        self.rest = Rest(settings, transport, env, site)
        self.session.shut.others, self.rest.shut.others = (self.rest.shut,), (self.session.shut,)
        self.tasks = Tasks(self.session)
        self.defined: attributes.Defined | None = None
        """Reads the names of custom attributes; None: from vCenter each time."""
        self.capacity = Capacities(self.session)
        self.inventory = Inventories(self.session)
        self.grants = Grants(self.session, self.inventory)
        self.directory = Directory(self.session)
        self.hosts = Hosts(self.session, self.tasks)
        self.leases = self.hosts.leases
        self.host_settings = HostSettings(self.session)
        self.cluster_notes = ClusterNotes(self.session, self.inventory)
        self.vgpus = Vgpus(self.session)
        self.switches = Switches(self.session, self.tasks)
        self.machines = Machines(self.session, self.tasks)
        self.events = Events(self.session)
        self.libraries = Libraries(self.rest, transport, settings)
        self.library_items = LibraryItems(self.rest)
        self.imports = Imports(self.session, self.tasks, transport, self.authorities)

    def share(self, cache: SurveyCache) -> None:
        """Read the names of custom attributes once in a survey: several kinds need them."""

        def defined(content: object) -> Mapping[int, str]:
            return cache.shared("custom attributes", lambda: attributes.defined(content))

        self.defined = self.host_settings.defined = self.cluster_notes.defined = defined

    def about(self) -> tuple[str, str]:
        """The server's name with its build, and its API version, such as `8.0.3.0`."""
        about = self.session.content().about
        return safe(about.fullName), safe(about.apiVersion)

    @functools.cached_property
    def identity(self) -> Identity:
        """The identity for servers that register with it. Its certificate is read at the first call."""
        return identify.look(self.settings, self.transport, str(self.session.content().about.instanceUuid))

    def now(self) -> datetime:
        """The server's own time, UTC."""
        found: datetime = self.session.read(
            lambda content: service_instance(refs.stub(content)).CurrentTime()
        )
        return found.astimezone(UTC)

    def authorities(self) -> str:
        """The certificate authorities of vCenter as PEM, from the server that `vcenter.trust` verifies."""
        return self._authorities

    @functools.cached_property
    def _authorities(self) -> str:
        return roots.of(self.rest)

    def close(self) -> None:
        """Give leases back, then log out of both APIs, in parallel."""
        self.leases.close(tidy=not self.transport.read_only)
        rest = background.start(self.rest.close, "logout")
        self.session.close()
        rest.result()
