"""A server that does what it is asked to write, and answers nonsense: other types, nothing, too much,
escapes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
from bad_input import fuzz, lies, nasty
from bad_input.memory import Taken
from kinds.lifecycle import (
    EVERYTHING,
    LONG,
    QUICK,
    apply,
    difference,
    endings,
    made,
    plan,
    run_context,
    world,
)

import bfinfra
from bfinfra.backends import writes
from bfinfra.engine.apply import Options
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox import Running

GIB = 1 << 30
Answer = Callable[[httpx2.Response], httpx2.Response]


class Endless(httpx2.SyncByteStream):
    """1 GiB of spaces; `given` bytes were taken."""

    given = 0

    def __iter__(self) -> Iterator[bytes]:
        block = b" " * (1 << 20)
        while self.given < GIB:
            self.given += len(block)
            yield block


def with_body(body: bytes) -> Answer:
    return lambda found: httpx2.Response(found.status_code, headers=_kind(found), content=body)


def too_large(found: httpx2.Response) -> httpx2.Response:
    return httpx2.Response(found.status_code, headers=_kind(found), stream=Endless())


def _kind(found: httpx2.Response) -> dict[str, str]:
    return {"content-type": found.headers.get("content-type", "application/json")}


ANSWERS: dict[str, Answer] = {
    "nothing": with_body(b""),
    "1 GiB": too_large,
    "another type": with_body(b"5"),
    "a list of nothing": with_body(b"[null]"),
    "markup": with_body(b"<html><body>Sign in</body></html>"),
    "204 and nothing": lambda _: httpx2.Response(204),
    "302 elsewhere": lambda _: httpx2.Response(302, headers={"location": "https://elsewhere.test/"}),
    "500 with escapes": lambda found: httpx2.Response(
        500, headers=_kind(found), content=b'{"kind": "Status", "message": "\x1b]52;c;cm0=\x07", "code": "x"}'
    ),
    **{f"body {number}": with_body(body) for number, body in enumerate(lies.WHOLE)},
}


class Nonsense(httpx2.BaseTransport):
    """A filling: the answer to the nth write is another one. `counted` is shared by a run's transports."""

    def __init__(self, inner: httpx2.BaseTransport, counted: list[str], nth: int, answer: Answer) -> None:
        self._inner, self._counted, self._nth, self._answer, self._lock = (
            inner,
            counted,
            nth,
            answer,
            threading.Lock(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        found = self._inner.handle_request(request)
        if not writes.writes(request):
            return found
        with self._lock:
            self._counted.append(writes.name(request))
            struck = len(self._counted) == self._nth
        if not struck:
            return found
        found.read()
        found.close()
        return self._answer(found)

    def close(self) -> None:
        self._inner.close()


def answers(path: Path, sandbox: Running) -> int:
    """How many writes of an apply a server answers over HTTP: what Ansible does is not among them."""
    counted: list[str] = []
    context = replace(
        run_context(sandbox), middleware=(lambda inner: Nonsense(inner, counted, 0, ANSWERS["nothing"]),)
    )
    assert made(
        bfinfra.apply(
            bfinfra.load(path, sandbox=sandbox),
            approve=lambda _: EVERYTHING,
            options=Options(retry=QUICK),
            context=context,
        )
    )
    return len(counted)


def answered(path: Path, sandbox: Running, nth: int, answer: Answer) -> str:
    """One apply with that answer to its nth write: "succeeded" or "error", in words; what it wrote where that
    is the question. The next one finishes.
    """
    counted: list[str] = []
    memory = Taken()
    context = replace(run_context(sandbox), middleware=(lambda inner: Nonsense(inner, counted, nth, answer),))
    try:
        outcome = bfinfra.apply(
            bfinfra.load(path, sandbox=sandbox),
            approve=lambda _: EVERYTHING,
            options=Options(retry=QUICK, deadline=LONG),
            context=context,
        )
        problems = [ended.problem for ended in outcome.endings.values() if ended.problem]
    except BfinfraError as error:
        problems = list(error.problems)
    for problem in problems:
        text = str(problem)
        assert "this should not happen" not in text, text
        assert not nasty.acts(text), text
        assert len(text) < 10_000, len(text)
        assert problem.next or "waits for" in text, text
    assert memory.peak() < fuzz.MOST, f"{memory.peak() >> 20} MiB of memory"
    return "error" if problems else "succeeded"


def finished(path: Path, sandbox: Running, whole: str) -> None:
    """The next apply ends well in the world that was to be."""
    again = apply(path, sandbox)
    assert made(again), endings(again)
    assert world(sandbox) == whole, difference(world(sandbox), whole)
    left = plan(path, sandbox).pending
    assert left == (), left
