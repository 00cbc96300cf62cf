"""The life of a kind's example on the sandbox: apply, again, killed at a write, destroyed."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from forks import forks

import bfinfra
import bfinfra.kinds as registry
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Report
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Plan
from bfinfra.sandbox import Running

HERE = Path(__file__).parent
SPECS = HERE.parents[1] / "specs"
EXAMPLES = {path.stem: path for path in sorted((SPECS / "kinds").glob("*.yaml"))}
MADE_ANEW = tuple(
    re.compile(pattern)
    for pattern in (  # each begins with a text of its own: such a pattern is found ten times as fast
        r"(applied=)[\w+/=$-]*",
        r"(license=)[\w+/=$-]*",
        r'("(?:tls\.crt|tls\.key|cert\.pem|key\.pem|caBundle|bfinfra\.io/certificate|pod-template-hash|nodeName)": )"[^"]*"',
        r'(deployment-)[0-9a-f]{10}(?=[-"])',
    )
)
EVERYTHING = Allow(every_delete=True, every_disruption=True)
QUICK = RetryPolicy(attempts=5, lasts=0, pause=0.01, longest=0.05)
LONG = 120  # seconds that a resource may take: only a machine that does much else needs more than one


@functools.cache
def by_ansible(kind: str) -> bool:
    """Whether its writes go through Ansible, which takes a second or more of processor a run."""
    return (
        "LinuxHosts"
        in {str(p.annotation) for p in inspect.signature(registry.kind(kind)).parameters.values()}
        and registry.kind(kind).managed
    )


def unhurried(kinds: Iterable[str]) -> list[Any]:
    """Kinds as parameters of tests that write much: those by Ansible run with --peers only, as those of
    tests/kinds/test_by_ansible.py do.
    """
    return [pytest.param(kind, marks=pytest.mark.peers) if by_ansible(kind) else kind for kind in kinds]


def from_tests(word: str) -> list[str]:
    """The kinds whose test files say this for the tests of every kind."""
    found = (HERE / kind / f"test_{kind}.py" for kind in registry.names())
    return [each.parent.name for each in found if each.exists() and f"\n{word} = " in each.read_text()]


def of_test(kind: str, word: str) -> object:
    """What the test file of a kind says for the tests of every kind; None where it says nothing."""
    if not (HERE / kind / f"test_{kind}.py").exists():
        return None
    return vars(importlib.import_module(f"kinds.{kind}.test_{kind}")).get(word)


def run_context(sandbox: Running) -> bfinfra.RunContext:
    return bfinfra.RunContext(sandbox=sandbox, retry=QUICK)


def plan(path: Path, sandbox: Running, **how: Any) -> Plan:
    return bfinfra.plan(bfinfra.load(path, sandbox=sandbox), context=run_context(sandbox), **how)


def drift(path: Path, sandbox: Running) -> Report:
    return bfinfra.drift(bfinfra.load(path, sandbox=sandbox), context=run_context(sandbox))


def apply(path: Path, sandbox: Running, *, context: bfinfra.RunContext | None = None, **how: Any) -> Outcome:
    options = Options(retry=QUICK, deadline=LONG)
    return bfinfra.apply(
        bfinfra.load(path, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=options,
        context=context or run_context(sandbox),
        **how,
    )


def endings(outcome: Outcome) -> dict[str, str]:
    return {
        str(key): f"{ended.ending}" + (f": {ended.problem}" if ended.problem else "")
        for key, ended in outcome.endings.items()
    }


def made(outcome: Outcome) -> bool:
    return all(text in ("done", "kept") for text in endings(outcome).values())


def world(sandbox: Running) -> str:
    """The sandbox's world as text; seals hold salts, and certificates keys, which differ from run to run; on
    which node a pod runs is the scheduler's affair.
    """
    text = json.dumps(sandbox.world(), sort_keys=True).replace(
        ', "', ',\n"'
    )  # in lines, for who compares two; indenting takes six times as long
    for pattern in MADE_ANEW:
        text = pattern.sub(r"\1…", text)
    return text


def difference(now: str, whole: str) -> str:
    """The first lines by which two worlds differ."""
    here, there = set(now.splitlines()), set(whole.splitlines())
    return f"too much: {sorted(here - there)[:4]}, too little: {sorted(there - here)[:4]}"


def _child(path: Path, sandbox: Running, state: str, destroy: bool, go: Any) -> None:
    go.wait()
    os.environ["BFINFRA_STATE_HOME"] = state
    apply(path, sandbox, destroy=destroy)


def start_child(path: Path, sandbox: Running, state: Path, *, destroy: bool = False) -> tuple[Any, Any]:
    """A process of its own that applies once its event is set."""
    go = forks.Event()
    child = forks.Process(target=_child, args=(path, sandbox, str(state), destroy, go))
    child.start()
    return child, go


def kill_at(
    path: Path,
    sandbox: Running,
    nth: int,
    when: str,
    state: Path,
    *,
    destroy: bool = False,
    method: str = "*",
) -> int:
    """Apply in a process of its own that is killed before or after its nth write (of those by `method`); its
    exit code.
    """
    child, go = start_child(path, sandbox, state, destroy=destroy)
    sandbox.faults(
        {"api": "*", "method": method, "writes": True, "nth": nth, "do": {"kill": child.pid, "when": when}}
    )
    go.set()
    child.join(180)
    sandbox.clear_faults()
    assert child.exitcode is not None
    return child.exitcode


KILLED = -signal.SIGKILL
