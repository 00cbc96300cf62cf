"""Only one of several replicas leads: it renews a Lease, and another takes it after a whole period without
renewal.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from bfinfra.model.errors import BfinfraError, Conflict, Exists
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

API, KIND = "coordination.k8s.io/v1", "Lease"
LASTS, EVERY = (
    15.0,
    4.0,
)  # seconds: a leader silent for so long has lost the Lease; how often it renews; how often others check
GIVEN_UP = 10.0  # seconds without a renewal after which a leader stops by itself, before another may start
log = logging.getLogger("bfinfra.operator")


@dataclass
class Lease:
    """`me`: a name of this replica; `meta`: further metadata of the Lease. Clocks of machines are never
    compared: a Lease has expired if this process saw no change for long enough.
    """

    api: ClusterClient
    namespace: str
    name: str
    me: str
    clock: Callable[[], float] = time.monotonic
    meta: Mapping[str, object] = field(default_factory=dict)
    leading: bool = False
    _version: str = ""
    _last_renewal: tuple[str, str] = ("", "")
    _since: float = field(default=0.0)

    def step(self) -> bool:
        """Renew the Lease, or try to take it. Returns whether this replica leads now."""
        try:
            self.leading = self._renewed() if self.leading else self._taken()
        except (Conflict, Exists):
            self.leading = False
        except BfinfraError as error:
            log.warning("the Lease %s/%s: %s", self.namespace, self.name, error)
            self.leading = self.leading and self.clock() - self._since < GIVEN_UP
        return self.leading

    def lead(self, stop: threading.Event, every: float = EVERY) -> bool:
        """Wait until this replica leads; False if `stop` came first."""
        while not stop.is_set():
            if self.step():
                return True
            stop.wait(every)
        return False

    def keep(self, stop: threading.Event, lost: threading.Event, every: float = EVERY) -> None:
        """Renew until `stop`; sets `lost` if another replica leads, or might."""
        while not stop.wait(every):
            if not self.step():
                lost.set()
                return

    def release(self) -> None:
        """Release the Lease, so that another replica can lead at once."""
        if self.leading:
            self.leading = False
            try:
                self._write({"holderIdentity": ""}, self._version)
            except BfinfraError as error:
                log.warning("the Lease %s/%s is not given back: %s", self.namespace, self.name, error)

    def _taken(self) -> bool:
        found = self.api.get(API, KIND, self.name, self.namespace)
        if found is None:
            made = self.api.create(
                {
                    "apiVersion": API,
                    "kind": KIND,
                    "metadata": {**self.meta, "name": self.name, "namespace": self.namespace},
                    "spec": self._spec(0),
                }
            )
            return self._own(made)
        spec, now = found.get("spec") or {}, self.clock()
        holder, last_renewal = (
            str(spec.get("holderIdentity") or ""),
            (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")),
        )
        if last_renewal != self._last_renewal:
            self._last_renewal, self._since = last_renewal, now
        if holder not in ("", self.me) and now - self._since < LASTS:
            return False
        return self._own(
            self._write(
                self._spec(int(spec.get("leaseTransitions") or 0) + (holder != self.me)),
                found["metadata"]["resourceVersion"],
            )
        )

    def _renewed(self) -> bool:
        return self._own(self._write({"renewTime": _now()}, self._version))

    def _own(self, made: Mapping[str, Any]) -> bool:
        self._version, self._since = str(made["metadata"]["resourceVersion"]), self.clock()
        return True

    def _write(self, spec: Mapping[str, Any], version: str) -> dict[str, Any]:
        """Write only on the version that was read: of two that take it at once, one gets a Conflict."""
        return self.api.patch(
            API,
            KIND,
            self.name,
            {"metadata": {"resourceVersion": version}, "spec": dict(spec)},
            self.namespace,
        )

    def _spec(self, transitions: int) -> dict[str, Any]:
        now = _now()
        return {
            "holderIdentity": self.me,
            "leaseDurationSeconds": int(LASTS),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
