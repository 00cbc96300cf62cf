from __future__ import annotations

import httpx2
import pytest

from bfinfra.backends.vcenter.soap_transport import SoapTransport

ADDRESS = "https://vc.test:8443"


class Server(httpx2.BaseTransport):
    """Answers with what was laid ready, and keeps what it was asked."""

    def __init__(self, *answers: httpx2.Response) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return self.answers.pop(0)


class Breaking(httpx2.SyncByteStream):
    closed = False

    def __iter__(self):
        yield b"<a"
        raise httpx2.ReadError("gone")

    def close(self) -> None:
        self.closed = True


def answer(*cookies: str, body: bytes = b"<a/>") -> httpx2.Response:
    return httpx2.Response(200, headers=[("set-cookie", cookie) for cookie in cookies], content=body)


def line_to(server: Server) -> SoapTransport:
    return SoapTransport(server, ADDRESS, "bfinfra (site; me)", httpx2.Timeout(7, connect=3))


def test_what_is_asked_says_who_asks_and_how_long_it_waits():
    server = Server(answer())
    assert line_to(server).post("/sdk", b"<q/>", {"SOAPAction": "urn:vim25"}).content == b"<a/>"
    [request] = server.asked
    assert (request.method, str(request.url), request.read()) == ("POST", f"{ADDRESS}/sdk", b"<q/>")
    assert request.headers["user-agent"] == "bfinfra (site; me)"
    assert request.headers["soapaction"] == "urn:vim25"
    assert request.headers["host"] == "vc.test:8443"
    assert "cookie" not in request.headers
    assert request.extensions["timeout"] == {"connect": 3, "read": 7, "write": 7, "pool": 7}


def test_a_session_goes_with_all_that_is_asked_after_it_began():
    server = Server(answer('vmware_soap_session="ab12"; Path=/; HttpOnly; Secure'), answer(), answer())
    line = line_to(server)
    line.get("/sdk/vimServiceVersions.xml")
    line.post("/sdk", b"<q/>", {})
    line.post("/pbm", b"<q/>", {})
    assert [request.headers.get("cookie") for request in server.asked] == [
        None,
        'vmware_soap_session="ab12"',
        'vmware_soap_session="ab12"',
    ]
    assert line.cookies == {"vmware_soap_session": '"ab12"'}


def test_a_new_session_takes_the_place_of_the_one_before():
    server = Server(answer("vmware_soap_session=old", "route=a"), answer("vmware_soap_session=new"), answer())
    line = line_to(server)
    for _ in range(3):
        line.post("/sdk", b"<q/>", {})
    assert server.asked[1].headers["cookie"] == "vmware_soap_session=old; route=a"
    assert server.asked[2].headers["cookie"] == "vmware_soap_session=new; route=a"


def test_an_answer_that_breaks_off_lets_go_of_its_connection():
    broken = Breaking()
    with pytest.raises(httpx2.ReadError):
        line_to(Server(httpx2.Response(200, stream=broken))).post("/sdk", b"<q/>", {})
    assert broken.closed


def test_an_answer_that_is_left_half_read_lets_go_of_its_connection():
    broken = Breaking()
    with line_to(Server(httpx2.Response(200, stream=broken))).stream("/sdk", b"<q/>", {}) as found:
        assert next(found.iter_bytes()) == b"<a"
    assert broken.closed
