"""Whatever goes wrong between it and the servers, the next apply finds the world as it should be.

The demo site (`specs/singapore-poc.yaml`) runs on the sandbox, with one fault at one call in each trial.
Every write is tried. Of reads, every method of every server is tried at one call, drawn by the seed. The
apply must succeed, or end with an error that says what, why and what to do next. The next, undisturbed apply
must succeed, the servers must be as after an undisturbed apply, and the plan must be empty. "Sent again"
counts writes beyond those of an undisturbed apply. A write that the server had executed must not be repeated,
with three exceptions: a note that is set to the same value, a disk that is uploaded over itself, and an
import that is cancelled first. Times are shortened: stalls of 30 s take 1.5 s, the time-out of 60 s is 3 s
(0.75 s for a stall that outlasts it), pauses between retries are 0.01 s. A pause that Retry-After asks for is
checked, then cut short.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kinds.lifecycle import EVERYTHING, QUICK, endings
from torture.counting import Count, Effort, spread
from torture.parts.crash import finished, undisturbed
from torture.worlds import DEMO, sandbox_of

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.events import Ending
from bfinfra.sandbox import Running

ASKED = 7  # seconds that Retry-After asks for
SOAP, REST, KUBE, ESX = "vcenter", "rest", "kubernetes", "esx"
AGAIN = {(SOAP, "SetField"), (SOAP, "ImportVApp")}
"""Writes that may follow on their own lost answer. A note that comes before an act is set to the same again
where a look finds the act undone; a lease that nobody knows can't be filled: the import is cancelled, and
what it left is removed before the next.
"""
LATE = ("a stall longer than the time-out", "EnterMaintenanceMode_Task")
"""Left out: the server takes the host into maintenance when all is done, and nothing tells that from
somebody's own maintenance (docs/explanation/flaws.md).
"""
Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """`deed`: what the sandbox does; `apis`: where; `acted`: whether the call itself was done; `writes`
    only; `methods`: only those that end so.
    """

    name: str
    deed: Any
    apis: tuple[str, ...] = (SOAP, REST, KUBE, ESX)
    acted: bool = False
    only_writes: bool = False
    methods: str = ""
    timeout: float = 3.0
    pauses: float | None = None


FAULTS = (
    Fault("503", {"status": 503}),
    Fault(f"503 with Retry-After: {ASKED}", {"status": 503, "retry_after": ASKED}, pauses=ASKED),
    Fault("429", {"status": 429}),
    Fault("connection reset before the server acted", "reset_before"),
    Fault("connection reset after the server acted", "reset_after", acted=True),
    Fault("half an answer", {"half": True}, acted=True),
    Fault("a stall of 30 s", {"delay": 1.5}, acted=True),
    Fault("a stall longer than the time-out", {"delay": 1.5}, timeout=0.75),
    Fault("every session and token ends", {"expire": True}),
    Fault("NotAuthenticated", {"soap": "NotAuthenticated"}, (SOAP,)),
    Fault("401", {"status": 401}, (REST, KUBE)),
    Fault("409 Conflict, ConcurrentAccess", {"status": 409}, (REST, KUBE), only_writes=True),
    Fault("409 Conflict, ConcurrentAccess", {"soap": "ConcurrentAccess"}, (SOAP,), only_writes=True),
    Fault("a task that fails", {"task": "GenericVmConfigFault"}, (SOAP,), only_writes=True, methods="_Task"),
    Fault(
        "a lease that fails",
        {"task": "InsufficientResourcesFault"},
        (SOAP,),
        only_writes=True,
        methods="ImportVApp",
    ),
    Fault(
        "a lease that timed out",
        {"soap": "Timedout"},
        (SOAP,),
        only_writes=True,
        methods="HttpNfcLeaseComplete",
    ),
    Fault("410 Gone, InvalidCollectorVersion", {"status": 410}, (KUBE,)),
    Fault(
        "410 Gone, InvalidCollectorVersion",
        {"soap": "InvalidCollectorVersion"},
        (SOAP,),
        methods="WaitForUpdatesEx",
    ),
)


@dataclass(frozen=True)
class Call:
    """The nth call of a method of an API; `nth` of a write counts all writes of that method."""

    api: str
    method: str
    nth: int
    writes: bool

    def rule(self, fault: Fault) -> Rule:
        return {
            "api": self.api,
            "method": self.method,
            "nth": self.nth,
            "writes": self.writes,
            "do": fault.deed,
        }

    def __str__(self) -> str:
        return f"{self.api} {self.method} #{self.nth}"


@dataclass(frozen=True)
class Trial:
    """A fault at a call."""

    fault: Fault
    call: Call

    @property
    def line(self) -> str:
        return f"{self.fault.name}, at {'each write' if self.call.writes else 'reads'}"


def counts(effort: Effort) -> Iterator[Count]:
    with sandbox_of(DEMO, effort.folder) as sandbox:
        undisturbed(DEMO, sandbox)
        tally = sandbox.tally()
    yield from spread(work, drawn(tally, effort), effort)


def drawn(tally: Mapping[str, Any], effort: Effort) -> list[Trial]:
    """What is tried. A share has one line of three, so that all of them are tried in turn."""
    found: list[Trial] = []
    writes, reads = each_write(tally), each_read(tally, effort)
    for number, fault in enumerate(FAULTS):
        for calls in (writes, reads):
            fitting = [Trial(fault, call) for call in calls if fits(fault, call)]
            chance = effort.chance(f"{fault} {number} {len(calls)}")
            fitting = (
                chance.sample(fitting, min(len(fitting), chance.random() < 1 / 3))
                if effort.share
                else fitting
            )
            found += [trial for trial in fitting if effort.wants(trial.line)]
    return found


def work(trials: list[Trial], effort: Effort) -> list[Count]:
    """These trials on a sandbox of their own."""
    lines: dict[str, Count] = {}
    with sandbox_of(DEMO, effort.folder) as sandbox:
        bench = Bench(sandbox, undisturbed(DEMO, sandbox), sandbox.tally()["writes"])
        for trial in trials:
            count = lines.setdefault(trial.line, Count(trial.line))
            with count.trial(str(trial.call)):
                tried(trial.fault, trial.call, count, bench)
    return list(lines.values())


def each_write(tally: Mapping[str, Any]) -> list[Call]:
    return [
        Call(api, method, nth, True)
        for api, methods in tally["writes"].items()
        for method, times in methods.items()
        for nth in range(1, times + 1)
    ]


def each_read(tally: Mapping[str, Any], effort: Effort) -> list[Call]:
    chance = effort.chance("reads")
    reads = [
        (api, method, times - tally["writes"].get(api, {}).get(method, 0))
        for api, methods in tally["calls"].items()
        for method, times in methods.items()
    ]
    return [Call(api, method, chance.randint(1, times), False) for api, method, times in reads if times]


def fits(fault: Fault, call: Call) -> bool:
    return (
        (fault.name, call.method) != LATE
        and call.api in fault.apis
        and call.method.endswith(fault.methods)
        and (call.writes or not fault.only_writes)
    )


@dataclass(frozen=True)
class Bench:
    """The sandbox; the world that is to be; how often an undisturbed apply wrote what."""

    sandbox: Running
    whole: str
    writes: Mapping[str, Mapping[str, int]]


def tried(fault: Fault, call: Call, count: Count, bench: Bench) -> None:
    """One apply with the fault, and one without."""
    sandbox, paused = bench.sandbox, []
    sandbox.reset()
    sandbox.faults(call.rule(fault))
    problems = disturbed(sandbox, fault, paused.append)
    struck = sum(rule["done"] for rule in sandbox_rules(sandbox))
    sandbox.clear_faults()
    assert struck == 1, f"the fault struck {struck} times"
    count.add("errors" if problems else "succeeded at once", 1)
    for problem in problems:
        assert problem.what and problem.why and problem.next, f"says too little: {problem!r}"
    if (
        fault.pauses is not None and paused
    ):  # what is not needed (a log-out, a figure of progress) is not asked for again
        assert max(paused) >= fault.pauses, f"asked for {fault.pauses} s, waited {paused}"
    finished(DEMO.site, sandbox, bench.whole)
    repeated = again(sandbox.tally()["writes"], bench.writes, call, acted=fault.acted or not call.writes)
    count.add("sent again", sum(repeated.values()))
    blindly = (
        fault.acted
        and call.writes
        and call.api != ESX
        and (call.api, call.method) not in AGAIN
        and repeated[call.api, call.method]
    )
    assert not blindly, f"repeated although the server had acted: {dict(repeated)}"


def sandbox_rules(sandbox: Running) -> list[Any]:
    found: list[Any] = sandbox._ask("GET", "/faults")
    return found


def disturbed(sandbox: Running, fault: Fault, on_pause: Callable[[float], None]) -> list[Problem]:
    """How an apply with the fault ended: no problem, or what it says."""

    def sleep(seconds: float) -> None:
        on_pause(seconds)
        time.sleep(min(seconds, QUICK.longest))

    retry = replace(QUICK, sleep=sleep)
    run_context = bfinfra.RunContext(
        sandbox=sandbox, retry=retry, middleware=(lambda inner: Impatient(inner, fault.timeout),)
    )
    try:
        outcome = bfinfra.apply(
            bfinfra.load(DEMO.site, sandbox=sandbox),
            approve=lambda _: EVERYTHING,
            options=Options(retry=retry, deadline=20),
            context=run_context,
        )
    except BfinfraError as error:
        return list(error.problems)
    problems = [
        ended.problem for ended in outcome.endings.values() if ended.ending in (Ending.FAILED, Ending.WAITING)
    ]
    assert problems or all(
        ended.ending in (Ending.DONE, Ending.UNCHANGED) for ended in outcome.endings.values()
    ), endings(outcome)
    return [problem or Problem("") for problem in problems]


class Impatient:
    """Middleware of the transport with a shorter time-out for each read, in seconds."""

    def __init__(self, inner: Any, seconds: float) -> None:
        self._inner, self._seconds = inner, seconds

    def handle_request(self, request: Any) -> Any:
        request.extensions = {
            **request.extensions,
            "timeout": {
                "connect": self._seconds * 4,
                "read": self._seconds,
                "write": self._seconds,
                "pool": 10,
            },
        }
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def again(
    now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]], call: Call, *, acted: bool
) -> Counter[tuple[str, str]]:
    """Writes by API and method beyond those of an undisturbed apply; the struck one may be sent once more
    where the server had not acted.
    """
    found: Counter[tuple[str, str]] = Counter(
        {(api, method): times for api, methods in now.items() for method, times in methods.items()}
    )
    found.subtract(
        {(api, method): times for api, methods in before.items() for method, times in methods.items()}
    )
    found.subtract({} if acted else {(call.api, call.method): 1})
    return +found
