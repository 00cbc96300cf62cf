"""Leases: of several runs one at a time puts hosts of a cluster into maintenance mode.

A lease is the definition of a custom attribute, as vCenter lets one caller alone create a name. Its value on
the root folder names the holder and counts its renewals. Whoever waits for one takes it for abandoned when
the count stands still, by its own clock, and removes that definition by its key. The former holder's renewals
fail from then on, and it renews before each write.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime

from pyVmomi import vim

from bfinfra.backends.vcenter import attributes, properties
from bfinfra.backends.vcenter.esxi import Lease
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.words import safe
from bfinfra.model import process
from bfinfra.model.errors import Conflict, Exists, Forbidden, Missing, Rejected, RemoteError
from bfinfra.model.records import dataclass

PREFIX = "bfinfra lease "
"""How the names of their attributes begin; the cluster's id follows."""
RENEWED = 30.0  # seconds between two renewals
STALE = 180.0  # seconds without a renewal after which a lease is abandoned
UNSIGNED = 30.0  # the same for one without a holder: its run ended between two requests, or is about to sign
UNPROTECTED = (
    "another run that restarts hosts of the cluster at the same time could not be excluded: the account may "
    "not define custom attributes (Global.ManageCustomFields) and set them on the root folder "
    "(Global.SetCustomField)"
)


@dataclass
class _Held:
    """A lease of this run. `key`: None where the account may not define attributes; `users`: what it is held
    for.
    """

    key: int | None
    since: str
    count: int = 0
    users: set[str] = field(default_factory=set)


class Leases:
    """The leases of one vCenter's clusters: which others hold, and which this run holds. Raises
    RemoteError.
    """

    def __init__(self, session: SoapSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._others: dict[str, tuple[Lease, float]] = {}
        """Cluster → another run's lease, and when it was first seen with that count."""
        self._over = threading.Event()
        self._own: set[int] = set()
        """The keys of all leases that this run has ever held."""
        self._renewing: threading.Thread | None = None
        self._unsaid = ""

    def look(self, content: vim.ServiceInstanceContent, defined: Mapping[int, str]) -> None:
        """Note which leases others hold. `defined`: the names of all attributes by key. Part of a read."""
        with self._lock:
            own = frozenset(self._own)
        there = {
            name.removeprefix(PREFIX): key
            for key, name in defined.items()
            if name.startswith(PREFIX) and key not in own
        }
        values = _values(content) if there else {}
        now, found = self._clock(), {}
        for cluster, key in there.items():
            lease = Lease.decode(key, values.get(key, ""))
            known = self._others.get(cluster)
            found[cluster] = known if known and known[0] == lease else (lease, now)
        self._others = found

    def read(self, ask: attributes.Defined | None = None) -> None:
        """The same, as a read of its own. `ask`: reads the names of attributes."""
        self._session.read(lambda content: self.look(content, (ask or attributes.defined)(content)))

    def other(self, cluster: str) -> Lease | None:
        """The lease of another run that has to be waited for; None if there is none, or an abandoned one."""
        lease, since = self._others.get(cluster, (None, 0.0))
        return None if lease is None or self._abandoned(lease, since) else lease

    def _abandoned(self, lease: Lease, since: float) -> bool:
        limit = STALE if lease.holder else UNSIGNED
        return process.ended(lease.holder) or self._clock() - since >= limit

    def take(self, cluster: str, user: str) -> None:
        """Hold the lease of a cluster for `user`, with its other users. Raises Conflict if another run has
        it.
        """
        with self._lock:
            held = self._held.get(cluster)
            if held is None:
                held = self._held[cluster] = self._session.write(
                    lambda content: self._create(content, cluster)
                )
            held.users.add(user)
            if held.key is not None and self._renewing is None:
                self._renewing = threading.Thread(target=self._renew_all, name="leases", daemon=True)
                self._renewing.start()

    def confirm(self, cluster: str) -> None:
        """Renew the lease, before a write. Raises Conflict if another run has taken it over."""
        with self._lock:
            if cluster not in self._held or not self._renewed(cluster):
                raise self._conflict(
                    cluster, "was taken over by another run, as it had not been renewed for long"
                )

    def leave(self, cluster: str, user: str) -> None:
        """`user` needs it no more. With its last user it is removed."""
        with self._lock:
            held = self._held.get(cluster)
            if held is not None:
                held.users.discard(user)
                if not held.users:
                    with contextlib.suppress(RemoteError):  # `close` tries again
                        self._remove(cluster)

    @contextlib.contextmanager
    def held(self, cluster: str, user: str) -> Iterator[None]:
        """Hold the lease for a write, for as long as that takes. Raises Conflict if another run has it."""
        self.take(cluster, user)
        try:
            self.confirm(cluster)
            yield
        finally:
            self.leave(cluster, user)

    def warning(self) -> str:
        """What to say of a run that held none, as it could not: once, then ""."""
        said, self._unsaid = self._unsaid, ""
        return said

    def close(self, *, tidy: bool = False) -> None:
        """Give back all that are held. `tidy`: also remove abandoned ones that were read, which nobody may
        ever need again.
        """
        self._over.set()
        with self._lock, contextlib.suppress(RemoteError):  # others find them abandoned
            for cluster in [*self._held]:
                self._remove(cluster)
            for lease, since in self._others.values() if tidy else ():
                if self._abandoned(lease, since):
                    self._undefine(lease.key)

    def _create(self, content: vim.ServiceInstanceContent, cluster: str) -> _Held:
        manager = content.customFieldsManager
        assert manager is not None  # a vCenter has one; a host without one has no clusters
        lease, since = self._others.get(cluster, (None, 0.0))
        if lease is not None and self._abandoned(lease, since):
            with _gone():
                manager.RemoveCustomFieldDef(lease.key)
        made = _Held(None, _now())
        try:
            made.key = int(manager.AddCustomFieldDef(PREFIX + cluster, vim.Folder, None, None).key)
            self._own.add(made.key)
            self._sign(content, made)
        except Exists:
            raise self._conflict(cluster, "is held by another run") from None
        except RemoteError as error:
            if made.key is not None:
                with contextlib.suppress(RemoteError):
                    manager.RemoveCustomFieldDef(made.key)
            if not isinstance(error, Forbidden):
                raise
            made.key, self._unsaid = None, UNPROTECTED
        return made

    def _sign(self, content: vim.ServiceInstanceContent, held: _Held) -> None:
        held.count += 1
        text = f"by={process.me()} since={held.since} n={held.count}"
        assert content.customFieldsManager is not None
        assert held.key is not None
        content.customFieldsManager.SetField(content.rootFolder, held.key, text)

    def _renewed(self, cluster: str) -> bool:
        """Renew one. Returns whether it is still this run's; if not, it is forgotten."""
        held = self._held[cluster]
        if held.key is None:
            return True
        try:
            self._session.write(lambda content: self._sign(content, held))
        except (Missing, Rejected):
            if held.key in self._session.read(attributes.defined):
                raise
            del self._held[cluster]
            return False
        return True

    def _renew_all(self) -> None:
        while not self._over.wait(RENEWED):
            with self._lock:
                for cluster in [*self._held]:
                    with contextlib.suppress(RemoteError):  # tried again, and before the next write
                        self._renewed(cluster)

    def _remove(self, cluster: str) -> None:
        key = self._held[cluster].key
        if key is not None:
            self._undefine(key)
        del self._held[cluster]

    def _undefine(self, key: int) -> None:
        with _gone():
            self._session.write(lambda content: content.customFieldsManager.RemoveCustomFieldDef(key))

    def _conflict(self, cluster: str, why: str) -> Conflict:
        return Conflict(
            "another run restarts hosts of the same cluster",
            server=self._session.server,
            why=f"the lease of {safe(cluster)} {why}",
            next="wait until it has ended, then apply again",
        )


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """What another has removed meanwhile is gone as well."""
    with contextlib.suppress(Missing, Rejected):
        yield


def _values(content: vim.ServiceInstanceContent) -> dict[int, str]:
    """The values of the root folder's attributes, by key."""
    row = properties.one(content, content.rootFolder, ["customValue"])
    return {each.key: str(each.value) for each in row["customValue"] or ()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
