"""A server that quotes what it was sent: as text, as a SOAP fault, as a REST error, as a Kubernetes status,
in base64.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from xml.sax.saxutils import escape

import httpx2

FAULT = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope '
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
    "<soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>{0}</faultstring><detail>"
    '<InvalidArgumentFault xmlns="urn:vim25" '
    'xsi:type="InvalidArgument"><invalidProperty>{0}</invalidProperty></InvalidArgumentFault>'
    "</detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>"
)
FORMS = {
    "plain": lambda echoed: echoed.decode(errors="replace"),
    "base64": lambda echoed: base64.b64encode(echoed).decode(),
    "url": urllib.parse.quote_from_bytes,
    "json": lambda echoed: json.dumps(echoed.decode(errors="replace")),
    "hex": bytes.hex,
}


class Echo(httpx2.BaseTransport):
    """`how`: "<form> <part>": a form of FORMS; part: login (what carries credentials), write (what else
    writes), all.
    """

    def __init__(self, how: str, inner: httpx2.BaseTransport) -> None:
        self._form, self._part = how.split()
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read() if "/nfc/" not in request.url.path else b""
        basic = request.headers.get("authorization", "").startswith("Basic ")
        login = (
            basic or b"<Login " in body or b":Login " in body or (b"Login>" in body and b"userName" in body)
        )
        writing = (
            request.method not in ("GET", "HEAD")
            and not login
            and (b"<Retrieve" not in body and b"RetrieveService" not in body)
        )
        struck = {"login": login, "write": writing and _carries(request, body), "all": login or writing}[
            self._part
        ]
        return self._answer(request, body) if struck else self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()

    def _answer(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        headers = " ".join(
            f"{key}: {value}"
            for key, value in request.headers.items()
            if key in ("authorization", "cookie", "vmware-api-session-id")
        )
        basic = request.headers.get("authorization", "").removeprefix("Basic ")
        decoded = (
            base64.b64decode(basic) if request.headers.get("authorization", "").startswith("Basic ") else b""
        )
        echoed = FORMS[self._form](b" ".join((_values(body), headers.encode(), decoded, body[:200_000])))
        if request.url.path == "/sdk":
            return httpx2.Response(
                500, text=FAULT.format(escape("".join(c for c in echoed if c.isprintable()))), request=request
            )
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "Invalid",
            "message": echoed,
            "code": 422,
            "details": {"causes": [{"field": echoed, "message": echoed}]},
        }
        rest = {
            "error_type": "INVALID_ARGUMENT",
            "messages": [{"default_message": echoed, "id": "x", "args": [echoed]}],
            **status,
        }
        return httpx2.Response(422, json=rest, request=request)


def _carries(request: httpx2.Request, body: bytes) -> bool:
    return b"password" in body.lower() or "/secrets" in request.url.path or b"CreateImportSpec" in body


def _values(body: bytes) -> bytes:
    """What a Kubernetes Secret holds, decoded, and the values of properties: a server may quote those."""
    if body.startswith(b"<"):
        return b" ".join(re.findall(rb"<value>([^<]*)</value>", body))
    try:
        data = json.loads(body).get("data") or {}
        return b" ".join(base64.b64decode(value) for value in data.values())
    except (ValueError, AttributeError):
        return b""
