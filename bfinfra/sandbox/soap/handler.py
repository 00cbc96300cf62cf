"""Handles vCenter's SOAP API: POST /sdk, and the two documents that clients read before they log in."""

from __future__ import annotations

import threading
from http.cookies import SimpleCookie
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler, Request, Response
from bfinfra.sandbox.inventory.vmtypes import support, vim, vmodl
from bfinfra.sandbox.soap import handlers, wire
from bfinfra.sandbox.soap.dispatch import CALLING, Call, Method, check_rights, info_of, lookup
from bfinfra.sandbox.soap.faulting import Faulting
from bfinfra.sandbox.soap.properties import fetch

if TYPE_CHECKING:
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.sessions import Sessions

XML = {"content-type": "text/xml; charset=utf-8"}
COOKIE = "vmware_soap_session"
VERSIONS = (
    "9.1.0.0",
    "9.0.0.0",
    "8.0.3.0",
    "8.0.2.0",
    "8.0.1.0",
    "8.0.0.0",
    "7.0.3.0",
    "7.0.2.0",
    "7.0.1.0",
    "7.0.0.0",
    "6.7",
    "6.5",
    "6.0",
)


def soap_handler(inventory: Inventory, sessions: Sessions, faults: Any, tally: Any, clock: Clock) -> Handler:  # noqa: ARG001 - the form that all handlers have
    """The handler. `faults` and `tally` may be None: nothing is injected or counted then."""
    handlers.load()
    shop = _Shop(inventory, sessions, Faulting(faults, tally))

    def handler(request: Request) -> Response:
        if request.path.rstrip("/") == "/sdk" and request.method == "POST":
            return shop.post(request)
        if (
            request.path in ("/sdk/vimServiceVersions.xml", "/sdk/vimService.wsdl", "/sdk/vimService")
            and request.method == "GET"
        ):
            return Response(200, service_versions(inventory.world.vcenter.version), XML)
        return Response(
            404, f"nothing at {request.method} {request.path}".encode(), {"content-type": "text/plain"}
        )

    return handler


def service_versions(version: str) -> bytes:
    """The API versions that the server supports, its own first."""
    mine = support.versionMap[f"vim25/{version}"]
    older = [
        each
        for each in VERSIONS
        if each != version and support.IsChildVersion(mine, support.versionMap[f"vim25/{each}"])
    ]
    prior = "".join(f"<version>{each}</version>" for each in older)
    return (
        '<?xml version="1.0" encoding="UTF-8" ?><namespaces version="1.0"><namespace><name>urn:vim25</name>'
        f"<version>{version}</version><priorVersions>{prior}</priorVersions></namespace></namespaces>"
    ).encode()


class _Shop:
    """The state that the calls of a handler share."""

    def __init__(self, inventory: Inventory, sessions: Sessions, faulting: Faulting) -> None:
        self.inventory, self.sessions, self.faulting = inventory, sessions, faulting
        self.newest = inventory.world.vcenter.version
        self.local = threading.local()

    def post(self, request: Request) -> Response:
        """One SOAP call."""
        version = self.version(request.headers.get("soapaction", ""))
        try:
            spoken = wire.parse(wire.envelope(request.body.read()), version)
        except wire.Malformed as error:
            return Response(500, wire.fault(vmodl.fault.InvalidRequest(msg=str(error)), version), XML)
        call = Call(
            self.inventory,
            self.sessions,
            self.sessions.find(cookie(request)),
            version,
            spoken.method,
            request.headers.get("user-agent", ""),
            loopback(request),
        )
        CALLING.set(call)
        try:
            content = self.invoke(call, spoken)
        except vmodl.MethodFault as error:
            return Response(500, wire.fault(error, version), XML)
        except Exception as error:  # noqa: BLE001 - a defect of the sandbox must reach the client as a fault, and the log in full
            return Response(500, wire.defect(error, spoken.method, version), XML)
        headers = (
            {**XML, "set-cookie": f'{COOKIE}="{call.cookie}"; Path=/; HttpOnly; Secure;'}
            if call.cookie
            else XML
        )
        return Response(200, wire.answer(spoken.method, content), headers)

    def version(self, action: str) -> str:
        """The API version of a SOAPAction; the server's own where it is newer, unknown or not given."""
        asked = support.versionMap.get(action.strip('"').rpartition(":")[2]) if "/" in action else None
        mine: str = support.versionMap[f"vim25/{self.newest}"]
        return asked if asked and support.IsChildVersion(mine, asked) else mine

    def invoke(self, call: Call, spoken: wire.Invocation) -> str:
        """The call's response elements."""
        if spoken.method != "Fetch":
            return self.method(call, spoken)
        with self.inventory.lock:
            return fetch(call, self.inventory.get(spoken.this), str(spoken.element.findtext("{*}prop")))

    def method(self, call: Call, spoken: wire.Invocation) -> str:
        """A method: looked up, its rights checked, faults injected, run."""
        with self.inventory.lock:
            this = self.inventory.get(spoken.this)
            info = info_of(spoken.method, this)
            if info.privId != "System.Anonymous" and call.session is None:
                raise vim.fault.NotAuthenticated(
                    object=this.ref,
                    privilegeId=info.privId or "System.View",
                    msg="The session is not authenticated.",
                )
            found = lookup(this, spoken.method)
            arguments = wire.arguments(spoken, info.params)
            check_rights(call, this, info, arguments)
        with self.faulting.during(call, this, arguments, writes=found.writes):
            result = self.run(found, call, this, arguments)
        return (
            str(result)
            if found.raw
            else wire.written("returnval", result, info.result, call.version, info.resultFlags)
            if result is not None
            else ""
        )

    def run(self, found: Method, call: Call, this: Managed, arguments: dict[str, Any]) -> Any:
        """The handler, under the lock where it wants it."""
        if not found.locked:
            return found.handle(call, this, SimpleNamespace(**arguments))
        with self.inventory.lock:
            return found.handle(call, this, SimpleNamespace(**arguments))


def loopback(request: Request) -> bool:
    """Return whether the caller reached the server by an address of its own machine."""
    return request.headers.get("host", "").startswith(("127.", "localhost", "[::1]"))


def cookie(request: Request) -> str | None:
    """The session key of a request: the SOAP cookie, or the header of REST sessions."""
    jar = SimpleCookie()
    jar.load(request.headers.get("cookie", ""))
    return jar[COOKIE].value if COOKIE in jar else request.headers.get("vmware-api-session-id")
