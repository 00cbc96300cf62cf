"""The client of SOAP: who asks, how long it waits, and the session that goes along."""

from __future__ import annotations

import httpx2
import pytest

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.connector import Connector, agent
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.model.errors import Rejected
from bfinfra.model.site import VCenterSettings

ADDRESS = "vc.test:8443"


class Server(httpx2.BaseTransport):
    """Answers with what was laid ready, and keeps what it was asked."""

    def __init__(self, *answers: httpx2.Response) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return self.answers.pop(0)


def answer(*cookies: str) -> httpx2.Response:
    return httpx2.Response(200, headers=[("set-cookie", cookie) for cookie in cookies], content=b"<a/>")


def client_of(server: Server) -> SoapTransport:
    transport = Transport(middleware=(lambda _: server,), timeout=7)
    return Connector(VCenterSettings(server=ADDRESS), transport, "site").http()


def test_what_is_asked_says_who_asks_and_how_long_it_waits():
    server = Server(answer())
    found = client_of(server).post("/sdk", b"<q/>", {"SOAPAction": "urn:vim25"})
    assert found.content == b"<a/>"
    [request] = server.asked
    assert (request.method, str(request.url), request.read()) == ("POST", f"https://{ADDRESS}/sdk", b"<q/>")
    assert request.headers["user-agent"] == agent("site")
    assert request.headers["soapaction"] == "urn:vim25"
    assert request.headers["host"] == ADDRESS
    assert "cookie" not in request.headers
    assert request.extensions["timeout"] == {"connect": 3.5, "read": 7, "write": 7, "pool": 7}


def test_a_session_goes_with_all_that_is_asked_after_it_began():
    server = Server(answer('vmware_soap_session="ab12"; Path=/; HttpOnly; Secure'), answer(), answer())
    http = client_of(server)
    http.get("/sdk/vimServiceVersions.xml")
    http.post("/sdk", b"<q/>", {})
    http.post("/pbm", b"<q/>", {})
    assert [request.headers.get("cookie") for request in server.asked] == [
        None,
        'vmware_soap_session="ab12"',
        'vmware_soap_session="ab12"',
    ]
    assert http.cookies["vmware_soap_session"] == '"ab12"'


def test_a_new_session_takes_the_place_of_the_one_before():
    server = Server(
        answer("vmware_soap_session=old; Path=/"), answer("vmware_soap_session=new; Path=/"), answer()
    )
    http = client_of(server)
    for _ in range(3):
        http.post("/sdk", b"<q/>", {})
    assert [request.headers.get("cookie") for request in server.asked] == [
        None,
        "vmware_soap_session=old",
        "vmware_soap_session=new",
    ]


def test_nobody_follows_a_redirect_to_another_server():
    server = Server(httpx2.Response(302, headers={"location": "https://other.test/sdk"}))
    with pytest.raises(Rejected, match="redirect"):
        client_of(server).post("/sdk", b"<q/>", {})
    assert len(server.asked) == 1
