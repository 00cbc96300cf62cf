"""The whole world in one process: every part built from the world file and wired to the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.bitfusion import BitfusionServers
from bfinfra.sandbox.certs import certs_handler
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.elsewhere import Elsewhere
from bfinfra.sandbox.faults import Faults
from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.handout import Api
from bfinfra.sandbox.inventory import BuiltInventory
from bfinfra.sandbox.linux import LinuxMachines
from bfinfra.sandbox.rest import FilledRestState, content_handler, rest_handler
from bfinfra.sandbox.server import Listeners
from bfinfra.sandbox.sessions import Sessions
from bfinfra.sandbox.soap import esx_handler, pbm_handler, soap_handler
from bfinfra.sandbox.speaking import Spoken
from bfinfra.sandbox.supervising import Supervisors
from bfinfra.sandbox.tally import Tally

if TYPE_CHECKING:
    from bfinfra.sandbox.pki import Pki
    from bfinfra.sandbox.world import World


class Parts:
    """Build it, optionally `restore` a saved state, then `open`; it serves until `close`."""

    def __init__(self, world: World, pki: Pki, pace: float) -> None:
        self.world, self.clock = world, Clock(pace)
        self.faults, self.tally = Faults(), Tally()
        self.faults.expire = self.expire
        self.listeners = Listeners(pki, self.faults, self.tally)
        self.inventory = BuiltInventory(world, self.clock)
        self.inventory.certificate = pki.certificate
        self.sessions = Sessions(world.users, self.clock)
        self.rest = FilledRestState(world, self.inventory, self.clock, pki, self.faults)
        self.bitfusion = BitfusionServers(self.inventory, self.listeners)
        self.supervisors = Supervisors(self.rest, self.listeners, self.bitfusion)
        self.elsewhere = Elsewhere(world, pki, self.clock, self.listeners, self.bitfusion)
        self.linux = LinuxMachines(
            world.linux_machines,
            pki,
            self.faults,
            self.tally,
            lambda: {address: each.memory for address, each in self.bitfusion.running.items()},
            self.elsewhere.by_kubeadm(),
        )
        self.elsewhere.host = self.linux.node
        self.reset_files: Callable[[], None] = lambda: None
        """Puts back the files that sites name."""
        self._rest_handler = rest_handler(self.inventory, self.sessions, self.rest)
        self._esx_handler = esx_handler(self.inventory)
        self._certs_handler = certs_handler(pki.ca_pem)

    def open(self) -> None:
        """Open every address that is there from the start."""
        self.listeners.open(
            f"{self.world.vcenter.host}:{self.world.vcenter.port}", self._vcenter_handler(), ""
        )
        for host in self.world.hosts:
            self.listeners.open(f"{host}:443", self._esx_handler, "esx")
        self.supervisors.open()
        self.elsewhere.open()
        self.linux.open()
        self._keep_as_new()

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        return {
            "inventory": self.inventory.save(),
            "rest": self.rest.save(),
            "supervisors": self.supervisors.save(),
            "elsewhere": self.elsewhere.save(),
            "linux": self.linux.save(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Load what `save` returned."""
        self.inventory.restore(data["inventory"])
        self.supervisors.restore(data["supervisors"])
        self.elsewhere.restore(data.get("elsewhere", {}))
        self.linux.restore(data.get("linux", {}))
        self.rest.restore(data["rest"])

    def dump(self) -> str:
        """The whole world as JSON, without generated ids and times: two equal worlds dump equal."""
        found = {
            "inventory": self.inventory.dump(),
            "rest": self.rest.dump(),
            "supervisors": self.supervisors.dump(),
            "elsewhere": self.elsewhere.dump(),
            "linux": self.linux.dump(),
        }
        return json.dumps(found).replace(json.dumps(self.rest.pki.ca_pem)[1:-1], "the CA's certificate")

    def reset(self) -> None:
        """Set everything back to its start: no sessions, no counts, no faults, no files but the world's."""
        self.clock.forget()
        self.expire()
        self.faults.clear()
        self.inventory.reset()
        self.rest.reset()
        self.supervisors.reset()
        self.elsewhere.reset()
        self.linux.reset()
        self.reset_files()
        self._keep_as_new()
        self.tally.clear()

    def _keep_as_new(self) -> None:
        """Once all have settled; most resets then find clusters that nothing was written to, and leave
        them.
        """
        self.clock.rest()
        for each in (
            *self.elsewhere.all.values(),
            *(supervisor.running for supervisor in self.supervisors.all.values()),
        ):
            each.keep_as_new()

    def expire(self) -> None:
        """End every session and token."""
        self.sessions.end_all()
        self.supervisors.expire()
        self.elsewhere.expire()

    def open_sessions(self) -> dict[str, list[str]]:
        """Names of the users with open sessions or tokens, by API."""
        found: dict[str, list[str]] = {
            "vcenter": [],
            "rest": [],
            "kubernetes": sorted([*self.supervisors.open_sessions(), *self.elsewhere.open_sessions()]),
        }
        for each in self.sessions.all():
            found[each.api].append(each.user.name)
        return found

    def kubernetes(self) -> dict[str, Api]:
        """Every Kubernetes API: the supervisors by their cluster's name, guests as namespace/name, others by
        their own.
        """
        found, others = self.supervisors.apis(), self.world.kubernetes_clusters
        for name, each in self.elsewhere.all.items():
            address = others[name].address
            found[f"{name} at {address}" if name in found else name] = Api(address, each.cluster.admin_token)
        return found

    def as_administrator(self, address: str) -> tuple[Handler | None, dict[str, str]]:
        """The handler behind an address, and the headers of an administrator's request; None where there is
        none to change.
        """
        if address != f"{self.world.vcenter.host}:{self.world.vcenter.port}":
            handler, headers = self.supervisors.as_administrator(address)
            return (handler, headers) if handler else self.elsewhere.as_administrator(address)
        admin = next(user for user in self.world.users if user.role == "admin")
        return self._rest_handler, {
            "vmware-api-session-id": self.sessions.login(
                admin.name, admin.password, "rest", "somebody else"
            ).key
        }

    def _vcenter_handler(self) -> Handler:
        rest = Spoken(self._rest_handler, "rest", self.faults, self.tally)
        handlers: dict[str, Handler] = {
            "sdk": soap_handler(self.inventory, self.sessions, self.faults, self.tally, self.clock),
            "pbm": pbm_handler(self.inventory, self.sessions, self.rest, self.faults, self.tally),
            "api": rest,
            "rest": rest,
            "nfc": Spoken(self._esx_handler, "esx", self.faults, self.tally),
            "cls": Spoken(content_handler(self.rest, self.sessions), "rest", self.faults, self.tally),
            "certs": Spoken(self._certs_handler, "vcenter", self.faults, self.tally),
        }

        def handler(request: Request) -> Response:
            found = handlers.get(request.path.split("/")[1] if "/" in request.path else "")
            return (
                found(request)
                if found
                else Response(404, f"nothing at {request.path}".encode(), {"content-type": "text/plain"})
            )

        return handler
