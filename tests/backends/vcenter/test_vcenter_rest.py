from __future__ import annotations

import json

import pytest

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.rest import Rest
from bfinfra.model.errors import (
    Busy,
    Conflict,
    Denied,
    Exists,
    Expired,
    Malformed,
    Missing,
    Rejected,
    Unanswered,
)
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

ENV = {"GOVC_USERNAME": "administrator@x", "GOVC_PASSWORD": "very-secret"}


@pytest.fixture
def rest(echo):
    echo.answers["/api/session"] = (201, b'"token-1"', {})
    transport = Transport()
    yield Rest(VCenterSettings(server=f"127.0.0.1:{echo.port}", trust=Trust(ca_pem=echo.pem)), transport, ENV)
    transport.close()


def error(kind: str, words: str) -> bytes:
    return json.dumps(
        {"error_type": kind, "messages": [{"id": "x", "default_message": words, "args": []}]}
    ).encode()


def test_it_logs_in_once_and_out_at_the_end(rest, echo):
    rest.get("/api/a")
    rest.get("/api/b")
    rest.close()
    assert [(m, p) for m, p, _ in echo.asked] == [
        ("POST", "/api/session"),
        ("GET", "/api/a"),
        ("GET", "/api/b"),
        ("DELETE", "/api/session"),
    ]


@pytest.mark.parametrize("asked_before", [True, False])
def test_who_asks_after_the_run_logs_in_no_more(rest, echo, asked_before):
    if asked_before:
        rest.get("/api/a")
    rest.close()
    before = echo.asked
    with pytest.raises(Rejected, match="the session is over"):
        rest.get("/api/b")
    assert echo.asked == before


def test_wrong_credentials_are_denied_and_never_shown(rest, echo):
    echo.answers["/api/session"] = (401, error("UNAUTHENTICATED", "no"), {})
    with pytest.raises(Denied) as raised:
        rest.get("/api/a")
    assert "very-secret" not in str(raised.value)


def test_an_ended_session_is_renewed_once_for_a_read(rest, echo):
    echo.answers["/api/a"] = (401, error("UNAUTHENTICATED", "ended"), {})
    with pytest.raises(Expired):
        rest.get("/api/a")
    assert [p for _, p, _ in echo.asked] == ["/api/session", "/api/a", "/api/session", "/api/a"]


def test_an_ended_session_is_not_renewed_under_a_write(rest, echo):
    echo.answers["/api/a"] = (401, error("UNAUTHENTICATED", "ended"), {})
    with pytest.raises(Expired):
        rest.patch("/api/a", {})
    assert [p for _, p, _ in echo.asked] == ["/api/session", "/api/a"]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "ALREADY_EXISTS", Exists),
        (404, "NOT_FOUND", Missing),
        (400, "CONCURRENT_CHANGE", Conflict),
        (400, "RESOURCE_BUSY", Busy),
        (503, "SERVICE_UNAVAILABLE", Busy),
        (403, "UNAUTHORIZED", Denied),
        (400, "INVALID_ARGUMENT", Rejected),
        (500, "INTERNAL_SERVER_ERROR", Unanswered),
        (400, "NOT_ALLOWED_IN_CURRENT_STATE", Rejected),
        (504, "TIMED_OUT", Unanswered),
    ],
)
def test_the_error_type_decides_the_class(rest, echo, status, kind, expected):
    echo.answers["/api/a"] = (status, error(kind, "the words of the server"), {})
    with pytest.raises(expected, match="the words of the server"):
        rest.post("/api/a", {})


def test_a_servers_error_on_a_read_may_be_asked_again(rest, echo):
    echo.answers["/api/a"] = (500, b"<html>", {})
    with pytest.raises(Busy):
        rest.get("/api/a")


def test_an_api_that_the_server_does_not_have_is_named_as_such(rest, echo):
    echo.answers["/api/a"] = (404, b"404 page not found", {})
    with pytest.raises(Missing) as raised:
        rest.get("/api/a")
    assert raised.value.problems[0].why == "the server has no such API (404)"
    assert "a vCenter of 7.0 or newer" in raised.value.problems[0].next


def test_retry_after_is_handed_on(rest, echo):
    echo.answers["/api/a"] = (503, b"", {"retry-after": "7"})
    with pytest.raises(Busy) as raised:
        rest.get("/api/a")
    assert raised.value.retry_after == 7


def test_older_error_bodies_are_read_too(rest, echo):
    body = {
        "type": "com.vmware.vapi.std.errors.not_found",
        "value": {"messages": [{"default_message": "no such tag"}]},
    }
    echo.answers["/rest/x"] = (404, json.dumps(body).encode(), {})
    with pytest.raises(Missing, match="no such tag"):
        rest.get("/rest/x")


def test_a_servers_words_are_made_safe_to_print(rest, echo):
    echo.answers["/api/a"] = (400, error("INVALID_ARGUMENT", "red \x1b[31m\n" + "x" * 5000), {})
    with pytest.raises(Rejected) as raised:
        rest.get("/api/a")
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_an_answer_that_is_no_json_is_malformed(rest, echo):
    echo.answers["/api/a"] = (200, b"<html>", {})
    with pytest.raises(Malformed):
        rest.get("/api/a")


def test_the_older_api_is_tried_where_the_new_one_is_missing(rest, echo):
    echo.answers["/api/session"] = (404, b"", {})
    echo.answers["/rest/com/vmware/cis/session"] = (200, b'{"value": "token-2"}', {})
    rest.get("/api/a")
    rest.close()
    assert echo.asked[-1][:2] == ("DELETE", "/rest/com/vmware/cis/session")


@pytest.mark.parametrize("around", ['{{"items": {}}}', "{}"])
def test_a_list_that_is_longer_than_any_in_a_vcenter_is_refused_before_each_is_asked_for(rest, echo, around):
    echo.answers["/api/a"] = (200, around.format(json.dumps(["a"] * 20_001)).encode(), {})
    with pytest.raises(Malformed, match="a list of more than 20,000 entries"):
        rest.get("/api/a")
    echo.answers["/api/a"] = (200, around.format(json.dumps(["a"] * 20_000)).encode(), {})
    assert rest.get("/api/a")
