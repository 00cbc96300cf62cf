from __future__ import annotations

import dataclasses
import itertools
import tracemalloc
import zlib

import httpx2
import pytest
from bad_input import liar

from bfinfra.backends import limits
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Malformed, RemoteError, Unanswered, Unreachable
from bfinfra.model.trust import Trust
from bfinfra.sandbox.pki import Pki

MIB = 1 << 20


@pytest.fixture(scope="module")
def lying(tmp_path_factory):
    """A maker: what to answer → a client of a server that answers so."""
    pki = Pki(tmp_path_factory.mktemp("liar"))
    transport, servers = Transport(), []

    def make(answer: liar.Answer) -> httpx2.Client:
        servers.append(liar.Liar(answer, pki))
        client = transport.client(servers[-1].url, Trust(ca_pem=pki.ca_pem))
        client.liar = servers[-1]
        return client

    yield make
    for server in servers:
        server.close()
    transport.close()


@pytest.fixture
def hasty(monkeypatch):
    """Every answer must be there within half a second."""
    for name in ("ROWS", "PAGE", "PLAIN", "SMALL", "LOG"):
        monkeypatch.setattr(limits, name, dataclasses.replace(getattr(limits, name), seconds=0.5))


def test_an_endless_body_is_given_up_at_the_limit_of_its_class(lying):
    client = lying(lambda _: liar.chunked(liar.forever(b" " * MIB)))
    for path, most in (
        ("/api/x", 16),
        ("/api/session", 1),
        ("/api/v1/pods?limit=500", 16),
        ("/api/v1/namespaces/a/pods/b/log", 2),
    ):
        client.liar.sent = 0
        with pytest.raises(Malformed, match=f"is too large; more than {most} MiB came; check what answers"):
            client.get(path)
        assert client.liar.sent < (most + 8) * MIB


def test_a_body_that_says_how_long_it_is_is_not_believed_either(lying):
    client = lying(
        lambda _: itertools.chain(
            [b"HTTP/1.1 200 X\r\nContent-Length: 1000000000\r\n\r\n"], liar.forever(b" " * MIB)
        )
    )
    with pytest.raises(Malformed, match="more than 16 MiB came"):
        client.get("/api/x")


def test_words_about_a_failure_are_bounded_more_closely(lying):
    client = lying(lambda _: [liar.answer(b" " * (2 * MIB), 500)])
    with pytest.raises(Malformed, match="more than 1 MiB came"):
        client.get("/api/x")


@pytest.mark.parametrize(
    ("packed", "encoding", "says"),
    [
        (liar.bomb(128 * MIB), "gzip", "more than 16 MiB came"),
        (zlib.compress(bytes(128 * MIB)), "deflate", "more than 16 MiB came"),
        (zlib.compress(bytes(128 * MIB))[2:-4], "deflate", "more than 16 MiB came"),
        (liar.gzip.compress(liar.bomb(128 * MIB)), "gzip, gzip", "bfinfra accepts gzip, deflate"),
        (b"x", "br", "bfinfra accepts gzip, deflate"),
    ],
)
def test_a_packed_bomb_is_never_unpacked_whole(lying, packed, encoding, says):
    client = lying(lambda _: [liar.answer(packed, Content_Encoding=encoding)])
    tracemalloc.start()
    with pytest.raises(Malformed, match=says):
        client.get("/api/x")
    assert tracemalloc.get_traced_memory()[1] < 48 * MIB
    tracemalloc.stop()


def test_what_follows_a_packed_body_is_not_kept(lying):
    """zlib keeps it all, and httpx2 asks it to: 10 MB that were packed twice took 1 GB."""
    blocks = [liar.gzip.compress(b"{}"), *[b"x" * MIB] * 12]
    client = lying(lambda _: liar.chunked(blocks, Content_Encoding="gzip"))
    tracemalloc.start()
    with pytest.raises(Malformed, match="can't be unpacked; it is not the 'gzip' that it says"):
        client.get("/api/x")
    assert tracemalloc.get_traced_memory()[1] < 6 * MIB
    tracemalloc.stop()


def test_what_is_packed_may_not_be_larger_than_what_is_not(lying):
    """A gzip header may name a file, at any length."""
    head = b"\x1f\x8b\x08\x08\0\0\0\0\0\0"
    client = lying(
        lambda _: liar.chunked(itertools.chain([head], liar.forever(b"x" * MIB)), Content_Encoding="gzip")
    )
    with pytest.raises(Malformed, match="more than 16 MiB came, packed"):
        client.get("/api/x")


def test_a_body_is_counted_as_what_it_is_and_not_as_what_it_is_called(lying):
    for kind, body in (
        ("text/xml", b" [" + b"[]," * MIB + b"0]"),
        ("application/json", b"<a>" + b"<b/>" * MIB),
    ):
        client = lying(lambda _, kind=kind, body=body: [liar.answer(body, kind=kind)])
        with pytest.raises(Malformed, match="more than 500,000 values came"):
            client.get("/api/x")


def test_a_small_body_of_countless_values_is_refused_before_a_parser_sees_it(lying):
    for kind, body in (
        ("application/json", b"[" + b"[]," * MIB + b"0]"),
        ("text/xml", b"<a>" + b"<b/>" * MIB + b"</a>"),
        ("a/b", b"[]," * MIB),
    ):
        client = lying(lambda _, kind=kind, body=body: [liar.answer(body, kind=kind)])
        with pytest.raises(Malformed, match="more than 500,000 values came"):
            client.get("/api/x")


def test_what_is_not_packed_as_it_says_is_malformed(lying):
    client = lying(lambda _: [liar.answer(b"not gzip", Content_Encoding="gzip")])
    with pytest.raises(Malformed, match="can't be unpacked; it is not the 'gzip' that it says"):
        client.get("/api/x")


def test_what_is_packed_honestly_is_read(lying):
    client = lying(lambda _: [liar.answer(liar.gzip.compress(b'{"a": 1}'), Content_Encoding="gzip")])
    assert client.get("/api/x").json() == {"a": 1}
    for body in (zlib.compress(b'{"a": 2}'), zlib.compress(b'{"a": 2}')[2:-4]):
        client = lying(lambda _, body=body: [liar.answer(body, Content_Encoding="deflate")])
        assert client.get("/api/x").json() == {"a": 2}
    client = lying(lambda _: [liar.answer(b"", Content_Encoding="gzip")])
    assert client.get("/api/x").content == b""


@pytest.mark.parametrize("dripped", ["body", "header", "chunks"])
def test_what_drips_is_given_up_after_the_time_of_its_class(lying, hasty, dripped):
    bodies = {
        "header": lambda _: itertools.chain([b"HTTP/1.1 200 X\r\nX: "], liar.dripping(b"x" * 9000)),
        "body": lambda _: itertools.chain(
            [b"HTTP/1.1 200 X\r\nContent-Length: 9000\r\n\r\n"], liar.dripping(b" " * 9000)
        ),
        "chunks": lambda _: liar.chunked(liar.dripping(b" " * 9000)),
    }
    client = lying(bodies[dripped])
    with pytest.raises(Malformed, match=r"takes too long; it was not complete after 0\.5 s"):
        client.get("/api/x")
    with pytest.raises(Unanswered):
        client.put("/api/x", json={})


def test_a_server_that_says_nothing_is_given_up_too(lying, hasty):
    client = lying(lambda _: (client.liar.ended.wait(9) and b"" for _ in range(1)))
    with pytest.raises(RemoteError):
        client.get("/api/x")


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"x" * MIB,
        b"".join(b"X-%d: y\r\n" % n for n in range(50_000)),
        b"\x1b]52;c;AAAA\x07: y",
        b"X: \xff\xfe",
    ],
)
def test_odd_headers_end_as_an_error_of_ours_or_not_at_all(lying, head):
    client = lying(lambda _: [b"HTTP/1.1 200 X\r\n" + head + b"\r\nContent-Length: 2\r\n\r\n{}"])
    try:
        assert client.get("/api/x").json() == {}
    except Unreachable as error:
        assert len(str(error)) < 500
        assert str(error).isprintable()


def test_an_upload_may_take_as_long_as_it_needs(lying, hasty):
    """The time of an answer begins when the request has gone out."""
    client = lying(lambda _: [liar.answer(b"{}")])
    assert (
        client.put("/api/x", content=liar.dripping(b"x" * 40), headers={"content-length": "40"}).status_code
        == 200
    )
