"""A full disk, a wrong clock, a field that the server does not know.

Whole processes run on the sandbox. First, the journal's disk is full, from the first line or from a random
byte on (by a limit on the size of files). No step may run that the journal has not recorded, the error must
name the file and the remedy, and with free space the next apply must finish. Second, Python's clock is ten
minutes off. OpenSSL checks certificates by the real clock; `tests/trust` has certificates whose dates are off
instead. Third, the API server refuses a field that its schema lacks with HTTP 500. The request must be sent
once only.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
from kinds.lifecycle import EVERYTHING, QUICK, apply, difference, endings, made, world
from torture.command import Desk, desk
from torture.counting import Count, Effort
from torture.worlds import DEMO, Place, sandbox_of

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox import Running

MINUTES = 10
FIRST = 10  # bytes: enough for the lock, too few for a line of the journal
SITE = """
site: wrong-field
kubernetes_cluster:
  other: {{kubeconfig: {{file: other.kubeconfig}}}}
namespace:
  one: {{cluster: other, namespace: wrong-field, labels: {{team: {team}}}}}
"""


def counts(effort: Effort) -> Iterator[Count]:
    with desk(DEMO, effort.folder) as at:
        alone = at.run("apply", "--yes")
        assert alone.end() == 0, alone.output()
        whole, size = world(at.sandbox), at.lock().with_name("journal.jsonl").stat().st_size
        full = Count("the journal's disk is full")
        with full.trial("from the first line"):
            at.sandbox.reset()
            short_journal(at, whole, FIRST, nothing=True)
        for turn in range(effort.number(12, 1)):
            at.sandbox.reset()
            bytes_left = effort.chance(f"full {turn}").randint(
                FIRST, size * 9 // 10
            )  # times and retries make journals of different length
            with full.trial(f"from byte {bytes_left}"):
                short_journal(at, whole, bytes_left)
        yield full
        clock = Count(f"the clock is {MINUTES} minutes off")
        for minutes in (MINUTES, -MINUTES)[: effort.number(2, 1)]:
            at.sandbox.reset()
            with clock.trial(f"{minutes} minutes"):
                shifted(at, whole, minutes)
        yield clock
    with sandbox_of(Place("wrong field", Path("wrong-field")), effort.folder) as sandbox:
        wrong = Count("server-side apply answers 500 for a field that the schema does not know")
        with wrong.trial("a Namespace"):
            wrong_field(effort.folder, sandbox, wrong)
        yield wrong


def short_journal(at: Desk, whole: str, left: int, *, nothing: bool = False) -> None:
    """No file of the process may have more than so many bytes; its output goes to a pipe. `nothing`: then
    nothing was written to the servers either.
    """
    journal = at.lock().with_name("journal.jsonl")
    journal.write_bytes(b"")
    words = at.words("apply", "--yes", "--output", "text")
    env = {
        **at.env("a"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # it would leave modules cut short for all that come after it
    done = subprocess.run(
        words,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (left, left)),
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1, output[-900:]
    assert "Traceback" not in output, output
    tells(output, "the journal can't be written", "File too large", "free space there, then run again")
    assert at.sandbox.sessions()["vcenter"] == []
    assert not (nothing and at.sandbox.tally()["written"])
    good(at, whole)


def tells(output: str, *parts: str) -> None:
    """What, why and what next."""
    assert all(part in output for part in parts), output[-900:]


def shifted(at: Desk, whole: str, minutes: int) -> None:
    program = (
        f"import sys, time; real = time.time; time.time = lambda: real() + {60 * minutes}; from bfinfra.cli "
        "import program; sys.exit(program())"
    )
    words = [sys.executable, "-c", program, *at.words("apply", "--yes")[3:]]
    done = subprocess.run(words, env=at.env("a"), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    good(at, whole)


def good(at: Desk, whole: str) -> None:
    """The next apply ends well in the world that was to be."""
    run = at.run("apply", "--yes")
    assert run.end() == 0, run.out.read_text()[-1000:] + run.output()
    now = world(at.sandbox)
    assert now == whole, difference(now, whole)


def wrong_field(folder: Path, sandbox: Running, count: Count) -> None:
    """What bfinfra applies is given such a field on its way."""
    site = folder / "site.yaml"
    site.write_text(SITE.format(team="a"))
    first = apply(site, sandbox)
    assert made(first), endings(first)
    site.write_text(SITE.format(team="b"))
    sent: list[str] = []
    options, run_context = (
        Options(retry=QUICK),
        bfinfra.RunContext(sandbox=sandbox, retry=QUICK, middleware=(lambda inner: Meddling(inner, sent),)),
    )
    outcome = bfinfra.apply(
        bfinfra.load(site, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=options,
        context=run_context,
    )
    (problem,) = [ended.problem for ended in outcome.endings.values() if ended.problem]
    count.figures |= {"applies sent": len(sent)}
    assert "nonsense: field not declared in schema" in problem.why, problem
    assert problem.next, problem
    assert sent == ["/api/v1/namespaces/wrong-field"]
    again = apply(site, sandbox)
    assert made(again), endings(again)


class Meddling:
    """A filling that puts a field that the schema does not know into what is applied."""

    def __init__(self, inner: Any, sent: list[str]) -> None:
        self._inner, self._sent = inner, sent

    def handle_request(self, request: Any) -> Any:
        if request.method == "PATCH" and request.headers["content-type"].startswith(
            "application/apply-patch"
        ):
            self._sent.append(request.url.path)
            body = {**json.loads(request.read()), "nonsense": True}
            headers = {name: value for name, value in request.headers.items() if name != "content-length"}
            request = httpx2.Request(
                "PATCH", request.url, headers=headers, json=body, extensions=request.extensions
            )
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()
