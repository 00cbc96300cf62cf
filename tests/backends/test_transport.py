from __future__ import annotations

import errno
import ssl

import httpx2
import pytest

from bfinfra.backends.outages import Outages
from bfinfra.backends.transport import Transport, WriteRefused
from bfinfra.model.errors import OutOfFiles, Unanswered, Unreachable, Untrusted
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Trust


@pytest.fixture
def transport():
    made = Transport()
    yield made
    made.close()


def test_an_authority_given_is_trusted(transport, echo):
    assert transport.client(echo.url, Trust(ca_pem=echo.pem)).get("/x").status_code == 200


def test_the_systems_store_does_not_know_the_test_server_and_its_fingerprint_is_shown(transport, echo):
    with pytest.raises(Untrusted) as raised:
        transport.client(echo.url, Trust()).get("/x")
    assert echo.pin.upper()[:2] in str(raised.value)
    assert ":".join(echo.pin[i : i + 2] for i in range(0, 64, 2)).upper() in str(raised.value)
    assert echo.asked == []


def test_an_extra_authority_counts_beside_the_systems_store(transport, echo):
    assert transport.client(echo.url, Trust(), extra_pem=echo.pem).get("/x").status_code == 200


def test_the_right_pin_is_trusted_whatever_the_name(transport, echo_named):
    echo = echo_named("another.name")
    assert transport.client(echo.url, Trust(sha256=echo.pin)).get("/x").status_code == 200


def test_a_wrong_pin_is_refused_before_anything_is_sent(transport, echo):
    with pytest.raises(Untrusted, match="pinned"):
        transport.client(echo.url, Trust(sha256="ab" * 32)).get("/x")
    assert echo.asked == []


def test_a_pin_is_checked_on_every_handshake_not_only_on_the_first(echo, echo_named):
    other, ways = echo_named(), []
    transport = Transport(route=lambda host, port: ("127.0.0.1", ways[-1]))
    ways.append(echo.port)
    client = transport.client("https://vc.test", Trust(sha256=echo.pin), headers={"connection": "close"})
    assert client.get("/x").status_code == 200
    ways.append(other.port)
    with pytest.raises(Untrusted):
        client.get("/x")
    assert other.asked == []
    transport.close()


def test_a_connection_that_is_made_while_its_run_ends_is_closed_and_asked_nothing(echo):
    def route(host: str, port: int) -> tuple[str, int]:
        transport.close()
        return "127.0.0.1", echo.port

    transport = Transport(route=route)
    with pytest.raises(Unreachable, match="closed meanwhile"):
        transport.client("https://vc.test", Trust(sha256=echo.pin)).get("/x")
    assert echo.asked == []


def test_a_certificate_for_another_name_is_refused(transport, echo_named):
    echo = echo_named("another.name")
    with pytest.raises(Untrusted):
        transport.client(echo.url, Trust(ca_pem=echo.pem)).get("/x")


def test_a_route_leads_elsewhere_while_the_name_is_still_verified(echo_named):
    echo = echo_named("vcsa.aiml.local")
    transport = Transport(
        route=lambda host, port: (
            ("127.0.0.1", echo.port) if (host, port) == ("vcsa.aiml.local", 443) else None
        )
    )
    assert transport.client("https://vcsa.aiml.local", Trust(ca_pem=echo.pem)).get("/x").status_code == 200
    transport.connect("vcsa.aiml.local", 443, 1)
    transport.close()


def test_plain_http_is_refused(transport):
    with pytest.raises(Untrusted, match="not https"):
        transport.client("http://127.0.0.1:1", Trust())


def test_a_client_does_not_leave_https_for_an_absolute_address(transport, echo):
    with pytest.raises(Untrusted, match="over http"):
        transport.client(echo.url, Trust(ca_pem=echo.pem)).put(
            f"http://127.0.0.1:{echo.port}/x", content=b"secret"
        )
    assert echo.asked == []


def test_an_authority_file_without_a_certificate_is_named(transport, tmp_path):
    (tmp_path / "ca.pem").write_text("nothing\n")
    with pytest.raises(Untrusted, match=r"ca\.pem"):
        transport.client("https://vc.test", Trust(ca_file=LocalFile("ca.pem", tmp_path / "ca.pem")))


def test_the_systems_store_is_read_once_for_all_servers_that_are_trusted_alike(
    transport, echo_named, monkeypatch
):
    read, first, second = [], echo_named(), echo_named()
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: read.append(1))
    both = first.pem + second.pem
    for echo in (first, second, first):
        assert transport.client(echo.url, Trust(), extra_pem=both).get("/x").status_code == 200
    assert read == [1]


@pytest.mark.parametrize("trust", [lambda echo: Trust(ca_pem=echo.pem), lambda echo: Trust(sha256=echo.pin)])
def test_the_protocols_of_a_context_that_threads_share_are_set_once(transport, echo, monkeypatch, trust):
    """OpenSSL frees those of before, which another thread may be copying into its greeting: one in 40,000 was
    garbled, and the server answered decode error.
    """
    ssl_s, known = ssl.SSLContext.set_alpn_protocols, []
    monkeypatch.setattr(
        ssl.SSLContext,
        "set_alpn_protocols",
        lambda self, protocols: (known.append(protocols), ssl_s(self, protocols))[1],
    )
    client = transport.client(echo.url, trust(echo), headers={"connection": "close"})
    for _ in range(3):
        assert client.get("/x").status_code == 200
    assert known == [["http/1.1"]]


def test_two_authority_files_of_the_same_name_are_two(transport, echo_named, tmp_path):
    trusts = {}
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "ca.pem"
        echo = echo_named()
        file.write_text(echo.pem)
        trusts[folder] = (echo, Trust(ca_file=LocalFile("ca.pem", file)))
    for echo, trust in trusts.values():
        assert transport.client(echo.url, trust).get("/x").status_code == 200
    with pytest.raises(Untrusted):
        transport.client(trusts["a"][0].url, trusts["b"][1]).get("/x")


def test_only_who_was_given_a_certificate_shows_it(transport, echo):
    trust, own = Trust(ca_pem=echo.pem), echo.both.read_text()
    for identity in (None, (own, own), None):
        with httpx2.Client(
            base_url=echo.url, transport=transport.transport(echo.url, trust, identity=identity)
        ) as client:
            client.get("/x")
    assert echo.met == [False, True, False]


def test_proxies_of_the_environment_are_ignored(echo, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    transport = Transport()
    assert transport.client(echo.url, Trust(ca_pem=echo.pem)).get("/x").status_code == 200
    transport.close()


def test_nobody_there_is_unreachable(transport):
    with pytest.raises(Unreachable):
        transport.client("https://127.0.0.1:1", Trust()).get("/x")
    with pytest.raises(Unreachable):
        transport.connect("127.0.0.1", 1, 1)


def test_a_lost_answer_to_a_write_is_unanswered_and_to_a_read_unreachable(transport, echo):
    echo.answers["/x"] = (0, b"", {})
    client = transport.client(echo.url, Trust(ca_pem=echo.pem))
    with pytest.raises(Unanswered):
        client.put("/x", content=b"1")
    with pytest.raises(Unreachable):
        client.get("/x")


def test_an_answer_that_breaks_off_is_noticed(transport, echo):
    echo.answers["/x"] = (200, b"half", {"content-length": "8", "connection": "close"})
    with pytest.raises(Unanswered):
        transport.client(echo.url, Trust(ca_pem=echo.pem)).post("/x", content=b"1")


def test_reading_only_refuses_a_write_before_it_leaves(echo):
    transport = Transport(read_only=True)
    client = transport.client(echo.url, Trust(ca_pem=echo.pem))
    with pytest.raises(WriteRefused, match="PUT /api/x"):
        client.put("/api/x", json={})
    assert echo.asked == []
    assert client.get("/api/x").status_code == 200
    transport.close()


def test_requests_and_writes_are_counted(transport, echo):
    client = transport.client(echo.url, Trust(ca_pem=echo.pem))
    client.get("/a")
    client.post("/b", json={})
    assert (transport.tally.requests, transport.tally.writes) == (2, 1)
    assert transport.tally.names["POST /b"] == 1


def test_middleware_is_between_the_client_and_the_network(echo):
    class Canned(httpx2.BaseTransport):
        def __init__(self, inner: httpx2.BaseTransport) -> None:
            self.inner = inner

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(299)

    transport = Transport(middleware=(Canned,))
    assert transport.client(echo.url, Trust(ca_pem=echo.pem)).get("/x").status_code == 299
    assert echo.asked == []
    transport.close()


def test_in_a_sandbox_an_address_of_this_machine_leads_to_the_sandbox_and_never_to_a_server_there(echo):
    port = httpx2.URL(echo.url).port
    trust = Trust(ca_pem=echo.pem)
    routed = Transport(
        route=lambda host, asked: ("127.0.0.1", port) if (host, asked) == ("127.0.0.1", 1) else None
    )
    assert routed.client("https://127.0.0.1:1", trust).get("/x").status_code == 200
    asked = len(echo.asked)
    with pytest.raises(Unreachable, match="the sandbox has no such address"):
        routed.client(echo.url, trust).get("/x")
    assert len(echo.asked) == asked
    assert routed.client(echo.url, trust, public=True).get("/x").status_code == 200  # what a site downloads
    routed.close()


def test_a_process_that_may_open_no_more_files_blames_no_server_and_waits_for_none(echo):
    asked = []

    class Full(httpx2.BaseTransport):
        def handle_request(self, request):
            asked.append(request)
            raise httpx2.ConnectError("Too many open files") from OSError(errno.EMFILE, "Too many open files")

    transport = Transport(middleware=(lambda _: Full(),), outages=Outages(90))
    client = transport.client(echo.url, Trust(ca_pem=echo.pem))
    for _ in range(2):
        with pytest.raises(OutOfFiles, match="ulimit -n"):
            client.get("/x")
    assert len(asked) == 2
    assert transport.outages.waiting() == {}
    transport.close()
