"""Servers that lie: what honest ones answered during a plan, repeated with one or two answers changed in shape,
type, encoding, status or size.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
from bad_input import at_a_desk, fuzz, nasty
from hypothesis import strategies as st
from lxml import etree

import bfinfra
from bfinfra.app import context
from bfinfra.backends import writes
from bfinfra.backends.kubernetes.connection import PAGES
from bfinfra.engine.guard import Allow
from bfinfra.sandbox import Running

Draw = Callable[[Any], Any]
MIB = 1 << 20
XSI = "{http://www.w3.org/2001/XMLSchema-instance}type"
WRONG: tuple[Any, ...] = (
    None,
    [],
    {},
    "",
    0,
    -1,
    5,
    1.5,
    1e308,
    True,
    [None],
    [[]],
    [5],
    ["a"],
    [{}],
    {"a": 1},
    {"": {}},
    {"name": 5},
    {"metadata": 5},
    {"items": 5},
    10**30,
    "9" * 5000,
    "x" * 70_000,
    "\ud800",
    *nasty.ESCAPES,
)
WHOLE = (
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"5",
    b"-",
    b"true",
    b'"a"',
    b"[null]",
    b'[{"a": {}}]',
    b'{"items": null}',
    b'{"items": [null]}',
    b'{"items": [{}]}',
    b'{"items": {"a": 1}}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"[1e999, NaN]",
    b'"\\ud800"',
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}",
    b"<html><body>Sign in</body></html>",
    b"<a/>",
    b"<a>" * 50_000,
    b"\x00" * 100,
    b"\x1b]52;c;cm0=\x07",
    (
        b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b '
        b'"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>'
    ),
    b"[" + b"{}," * MIB + b"{}]",
    b'<?xml version="1.0" encoding="utf-7"?><a/>',
    b'<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body/></Envelope>',
    b" " * (17 * MIB),
    b'{"kind": "Status", "code": "x", "details": 5, "message": {}}',
    b'{"error_type": [], "messages": {}}',
    b'{"messages": [5, {"default_message": {}}], "type": {}}',
    (
        b"<soapenv:Envelope "
        b'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault><faultcode>\xc2\x9b31m</faultcode><faultstring>&#x202e;&#x200b;x</faultstring></soapenv:Fault></soapenv:Body></soapenv:Envelope>'
    ),
)
STATUSES = (
    200,
    200,
    200,
    201,
    204,
    301,
    304,
    400,
    401,
    403,
    404,
    409,
    410,
    422,
    429,
    500,
    501,
    502,
    503,
    504,
    599,
)
KINDS = (
    "application/json",
    "text/xml",
    "text/html",
    "text/plain",
    "image/png",
    "",
    "application/json; charset=utf-16",
    "text/xml; charset=nonsense",
    "\x1b[2J",
)


@dataclass(frozen=True)
class Recorded:
    """One answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


Asked = tuple[str, str, bytes]


@dataclass
class Talk:
    """What was asked and answered during the plan of one site; `files` and `env` are what the site
    refers to.
    """

    site: Path
    env: dict[str, str]
    answers: dict[Asked, list[Recorded]] = field(default_factory=dict)

    @property
    def all(self) -> list[tuple[Asked, int]]:
        """Sorted: what is drawn from them must not hang on who asked first."""
        return [
            (asked, number) for asked, answer in sorted(self.answers.items()) for number in range(len(answer))
        ]


def recorded(site: Path, sandbox: Running, folder: Path) -> Talk:
    """Make the site's world, plan it, and keep the conversation."""
    shutil.copytree(sandbox.files, folder, dirs_exist_ok=True)
    shutil.copytree(site.parent.parent / "manifests", folder / "manifests", dirs_exist_ok=True)
    here = folder / site.name
    here.write_text(site.read_text().replace("../manifests", "manifests"))
    talk = Talk(here, dict(sandbox.env))

    class Recorder(httpx2.BaseTransport):
        def __init__(self, inner: httpx2.BaseTransport) -> None:
            self._inner, self._lock = inner, threading.Lock()

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            body = request.read()
            found = self._inner.handle_request(request)
            answer = Recorded(found.status_code, tuple(found.headers.multi_items()), found.read())
            with self._lock:
                talk.answers.setdefault((request.method, str(request.url), body), []).append(answer)
            return httpx2.Response(answer.status, headers=list(answer.headers), content=answer.body)

        def close(self) -> None:
            self._inner.close()

    made = bfinfra.apply(
        bfinfra.load(here, sandbox=sandbox),
        approve=lambda _: Allow(every_disruption=True),
        context=bfinfra.RunContext(sandbox=sandbox, retry=at_a_desk.QUICK),
    )
    assert made.ending == "done", made
    found = bfinfra.plan(
        bfinfra.load(here, sandbox=sandbox),
        context=bfinfra.RunContext(sandbox=sandbox, middleware=(Recorder,)),
    )
    assert not found.pending, found
    assert not found.unreadable, found
    return talk


SMALLER = re.compile(r"\blimit=\d+")


def liar(talk: Talk, changed: dict[tuple[Asked, int], Recorded]) -> type[httpx2.BaseTransport]:
    """A filling that says it all again, but for what is changed; what was never asked is not found."""
    left = {asked: list(enumerate(answer)) for asked, answer in talk.answers.items()}
    lock = threading.Lock()

    class Liar(httpx2.BaseTransport):
        def __init__(self, inner: httpx2.BaseTransport) -> None:
            self._inner = inner

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            assert not writes.writes(request), "a plan wrote"
            url = SMALLER.sub(f"limit={PAGES[0]}", str(request.url))  # after a page that was too large
            asked = request.method, url, request.read()
            with lock:
                rest = left.get(asked) or [(0, Recorded(404, (), b"{}"))]
                number, answer = rest.pop(0) if len(rest) > 1 else rest[0]
            answer = changed.get((asked, number), answer)
            headers = [(name, value.encode(errors="replace")) for name, value in answer.headers]
            return httpx2.Response(answer.status, headers=headers, content=answer.body)

        def close(self) -> None:
            self._inner.close()

    return Liar


@st.composite
def lies(draw: Draw, talk: Talk) -> tuple[dict[tuple[Asked, int], Recorded], Sequence[str]]:
    """One to three answers of a conversation, changed; and how the plan is asked for."""
    changed = {}
    for spot in draw(st.lists(st.sampled_from(talk.all), min_size=1, max_size=3)):
        answer = talk.answers[spot[0]][spot[1]]
        for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=2)):
            answer = change(draw, answer)
        changed[spot] = answer
    return changed, draw(
        st.sampled_from(
            (
                ("plan",),
                ("plan", "--output", "json"),
                ("drift", "--forget", "--output", "markdown"),
                ("plan", "--output", "jsonl"),
                ("plan", "--destroy", "--verbose"),
            )
        )
    )


def lied_to(talk: Talk, times: int, seed: int) -> fuzz.Found:
    """Plans and drifts of a site whose servers lie."""

    def check(given: tuple[dict[tuple[Asked, int], Recorded], Sequence[str]], found: fuzz.Found) -> None:
        changed, (command, *more) = given
        with _among(liar(talk, changed)):
            code = at_a_desk.answers(command, str(talk.site), *more, codes=(0, 1, 2))
        found.count(("planned", "refused", "drifted")[code])

    with answering(talk, {}):
        assert at_a_desk.output("plan", str(talk.site), "--detailed-exitcode")[0] == 0, at_a_desk.output(
            "plan", str(talk.site)
        )
        return fuzz.fuzz(lies(talk), check, times, seed, (talk.site.parent.parent / "home",))


@contextlib.contextmanager
def answering(talk: Talk, changed: dict[tuple[Asked, int], Recorded]) -> Iterator[None]:
    """The command line, with servers that say all that again but for what is changed."""
    with (
        at_a_desk.alone(talk.site.parent.parent),
        mock.patch.dict(os.environ, talk.env),
        _among(liar(talk, changed)),
    ):
        yield


@contextlib.contextmanager
def _among(filling: type[httpx2.BaseTransport]) -> Iterator[None]:
    with mock.patch.object(context, "LIVE", replace(context.LIVE, middleware=(filling,))):
        yield


def _other_body(draw: Draw, answer: Recorded) -> Recorded:
    return replace(answer, body=draw(st.sampled_from(WHOLE)))


def _other_status(draw: Draw, answer: Recorded) -> Recorded:
    return replace(answer, status=draw(st.sampled_from(STATUSES)))


def _other_kind(draw: Draw, answer: Recorded) -> Recorded:
    return replace(
        answer,
        headers=(
            *((name, value) for name, value in answer.headers if name != "content-type"),
            ("content-type", draw(st.sampled_from(KINDS))),
        ),
    )


def _cut(draw: Draw, answer: Recorded) -> Recorded:
    return replace(answer, body=answer.body[: draw(st.integers(0, len(answer.body)))])


def _bytes(draw: Draw, answer: Recorded) -> Recorded:
    at = draw(st.integers(0, len(answer.body)))
    piece = draw(
        st.sampled_from(
            (*nasty.BYTES, b"<", b"&", b'"', b"}", b"]]>", b"&#27;", b"\\u001b", b"\\u202e", b"\\ud800")
        )
    )
    return replace(answer, body=answer.body[:at] + piece + answer.body[at + draw(st.integers(0, 3)) :])


def _json(draw: Draw, answer: Recorded) -> Recorded:
    """Another value, or none, somewhere in a JSON body. A large one stays as it is: walking it takes memory, which
    would be taken for the product's.
    """
    if len(answer.body) > MIB:
        return answer
    try:
        whole = {"": json.loads(answer.body)}
    except (ValueError, RecursionError):
        return _xml(draw, answer)
    spots = list(_spots(whole))
    where, key = draw(st.sampled_from(spots))
    if key != "" and isinstance(where, dict) and draw(st.integers(0, 3)) == 0:
        del where[key]
    else:
        where[key] = draw(st.sampled_from(WRONG) | st.sampled_from(spots).map(lambda spot: spot[0][spot[1]]))
    with contextlib.suppress(ValueError, RecursionError):  # a value put into itself
        return replace(answer, body=json.dumps(whole[""]).encode())
    return answer


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    stack = [value]
    while stack:
        item = stack.pop()
        for key, inner in item.items() if isinstance(item, dict) else enumerate(item):
            yield item, key
            if isinstance(inner, dict | list):
                stack.append(inner)


def _xml(draw: Draw, answer: Recorded) -> Recorded:
    """An element gone, doubled, emptied, renamed, of another type or with another text."""
    try:
        root = etree.fromstring(answer.body, etree.XMLParser(resolve_entities=False))
    except (etree.XMLSyntaxError, ValueError):
        return _bytes(draw, answer)
    found = draw(st.sampled_from(list(root.iter(etree.Element))))
    words = [
        word
        for word in (*nasty.WORDS, *nasty.ESCAPES)
        if all(c in "\t\n" or (c >= " " and c not in "\ud800\uffff") for c in word)
    ]
    how = draw(st.sampled_from(("gone", "twice", "empty", "text", "text", "name", "type", "attribute")))
    parent = found.getparent()
    if how in ("gone", "twice") and parent is not None:
        parent.remove(found) if how == "gone" else parent.append(etree.fromstring(etree.tostring(found)))
    elif how == "empty":
        for child in found:
            found.remove(child)
    elif how == "name":
        found.tag = draw(
            st.sampled_from(
                (
                    "returnval",
                    "{urn:vim25}val",
                    "x",
                    "{urn:vim25}Fault",
                    "{urn:vim25}propSet",
                    "{urn:vim25}token",
                )
            )
        )
    elif how == "type":
        found.set(
            XSI,
            draw(
                st.sampled_from(
                    (
                        "xsd:int",
                        "xsd:boolean",
                        "ManagedObjectReference",
                        "ArrayOfString",
                        "HostSystem",
                        "NoSuchType",
                        "x:y:z",
                        "",
                        "xsd:dateTime",
                        "xsd:base64Binary",
                        "type",
                        "VirtualPCIPassthrough",
                    )
                )
            ),
        )
    elif how == "attribute" and found.attrib:
        found.set(draw(st.sampled_from(sorted(found.attrib))), draw(st.sampled_from(words)))
    else:
        found.text = draw(st.sampled_from(words))
    return replace(answer, body=etree.tostring(root))


CHANGES = (_other_body, _other_status, _other_kind, _cut, _bytes, _json, _json, _json, _xml, _xml)
