"""Does what `kubectl vsphere login` does: POST /wcp/login with the vCenter account, which returns a token,
and for guests their address and CA.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

import httpx2

from bfinfra.backends.credentials import Credentials, credentials
from bfinfra.backends.kubernetes import errors
from bfinfra.backends.kubernetes.access import Access, expiry
from bfinfra.backends.transport import Transport
from bfinfra.backends.words import web_page
from bfinfra.model.endpoint import SUPERVISOR_PORT, Endpoint
from bfinfra.model.errors import Denied, Malformed, Missing
from bfinfra.model.redact import hide
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

PASSWORD = ("KUBECTL_VSPHERE_PASSWORD",)
HOST = re.compile(r"[A-Za-z0-9.-]{1,253}|\[?[0-9A-Fa-f:.]{2,45}\]?")
NO_REMEDY = "check vcenter.username and vcenter.password, and that the account has access to the namespace"


def enter(
    transport: Transport, settings: VCenterSettings, roots: Callable[[], str], endpoint: Endpoint
) -> Access:
    """Log in to the supervisor at `endpoint.server`, or through it to a guest cluster. Raises Denied,
    Missing (of a guest), Malformed, Untrusted.
    """
    host = endpoint.server.rpartition(":")[0] or endpoint.server
    trust, pem = settings.supervisor_trust or Trust(), "" if settings.supervisor_trust else roots()
    request = (
        {"guest_cluster_name": endpoint.guest, "guest_cluster_namespace": endpoint.namespace}
        if endpoint.guest
        else {}
    )
    with transport.client(f"https://{endpoint.server}", trust, extra_pem=pem) as client:
        answer = _post(client, credentials(settings, before=PASSWORD), request, endpoint)
    token = hide(_text(answer, "session_id", endpoint), passing=True)
    if not endpoint.guest:
        return Access(f"https://{host}:{SUPERVISOR_PORT}", trust, pem, token, expires=expiry(token))
    return Access(
        _guest_url(answer, endpoint),
        Trust(ca_pem=_authority(answer, endpoint)),
        token=token,
        expires=expiry(token),
    )


def _post(
    client: httpx2.Client, who: Credentials, request: dict[str, str], endpoint: Endpoint
) -> dict[str, Any]:
    what = f"log in to {endpoint}"
    basic = base64.b64encode(f"{who.username}:{who.password.reveal()}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
    response = client.post("/wcp/login", content=json.dumps(request), headers=headers)
    page = web_page(response.content)
    if response.status_code in (401, 403):
        words = page or errors.words(response)
        refused = "the account or its password is not accepted"
        why = f"{refused}{f': {words}' if words else ''} ({response.status_code})"
        raise Denied(what, server=endpoint.server, why=why, next=NO_REMEDY)
    if page or response.status_code == 404:
        raise Malformed(
            what,
            server=endpoint.server,
            why=f"{page or 'the server has no such login'} ({response.status_code})",
            next="check that a supervisor answers at this address, and no proxy before it",
        )
    if response.status_code != 200:
        raise errors.of_answer(response, response.request, what, endpoint.server)
    try:
        answer = json.loads(response.content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise errors.malformed(what, endpoint.server, "the answer is not a JSON object")
    return answer


def _text(answer: dict[str, Any], name: str, endpoint: Endpoint) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not (value.isprintable() and value.isascii()) or not value:
        raise errors.malformed(f"log in to {endpoint}", endpoint.server, f"the answer has no {name}")
    return value


def _guest_url(answer: dict[str, Any], endpoint: Endpoint) -> str:
    server = answer.get("guest_cluster_server")
    if not server:  # a supervisor's answer for a cluster that it doesn't know, or that isn't up yet
        raise Missing(
            f"log in to {endpoint}",
            server=endpoint.server,
            why="the supervisor knows no running cluster of that name",
        )
    if not isinstance(server, str) or not HOST.fullmatch(server):
        raise errors.malformed(f"log in to {endpoint}", endpoint.server, "guest_cluster_server is not a host")
    return f"https://{f'[{server}]' if ':' in server and server[0] != '[' else server}:{SUPERVISOR_PORT}"


def _authority(answer: dict[str, Any], endpoint: Endpoint) -> str:
    try:
        return base64.b64decode(_text(answer, "guest_cluster_ca", endpoint), validate=True).decode()
    except (binascii.Error, ValueError):
        raise errors.malformed(
            f"log in to {endpoint}", endpoint.server, "guest_cluster_ca is not base64 of PEM"
        ) from None
