"""The context of the checks of `bfinfra doctor`: the site, its servers, and logins, each of which is tried
once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bfinfra.backends import certificate
from bfinfra.backends.certificate import Shown
from bfinfra.backends.vcenter.namespaces import Namespaces
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.finding import Blocked
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import Rights
from bfinfra.model.site import Site
from bfinfra.model.trust import Server

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.backends.images import Images
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.vcenter import VCenter

T = TypeVar("T")


@dataclass
class CheckContext:
    """`rights`: the privileges that the site needs; `state`: the folder of journal and lock; `now`: this
    machine's clock; `linux`: connects to Linux machines, made at its first use; `lost`: what existed at the
    last look from this machine and isn't found, by a survey.
    """

    site: Site
    rights: Rights
    transport: Transport
    clusters: Clusters
    images: Images
    vcenter: VCenter | None
    state: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    linux: Callable[[], LinuxHosts | None] = lambda: None
    lost: Callable[[], Mapping[Key, Problem]] = dict
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _known: dict[object, object] = field(default_factory=dict, repr=False)

    def of(self, kind: str) -> dict[Key, Any]:
        """The specs of a kind."""
        return {key: spec for key, spec in self.site.resources.items() if key.kind == kind}

    def once(self, find: Callable[[CheckContext], T]) -> T:
        """The result of a function that several checks need; it is called once."""
        with self._lock:
            if find not in self._known:
                self._known[find] = find(self)
            return cast("T", self._known[find])

    def look(self, server: Server) -> Shown:
        """The certificate that a server shows. Raises BfinfraError."""
        return certificate.look(
            self.transport, server.address, server.trust, what=server.what, extra_pem=server.extra_pem
        )

    def entered(self) -> VCenter:
        """The vCenter, logged in. Raises Blocked if the site has none, or if the one login failed. It is
        tried once, as several wrong passwords lock an account.
        """
        if self.vcenter is None:
            raise Blocked("vcenter", "the site has none")
        if isinstance(self.login, BfinfraError):
            raise Blocked(self.vcenter.server, "bfinfra can't log in to vCenter")
        return self.vcenter

    @property
    def login(self) -> BfinfraError | None:
        """The error of the one login by SOAP and REST, or None."""
        with self._lock:
            return self._login

    @functools.cached_property
    def _login(self) -> BfinfraError | None:
        try:
            if self.vcenter is not None:
                self.vcenter.session.content()
                Namespaces(self.vcenter).list()  # the object that every survey reads first
        except BfinfraError as error:
            return error
        return None
