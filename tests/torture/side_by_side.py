"""Runs of one site from two machines, each in a process of its own: with lags, and with a kill at a chosen call."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from forks import forks
from kinds.lifecycle import EVERYTHING, endings

import bfinfra
from bfinfra.backends.vcenter import leases
from bfinfra.engine.apply import Options
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import process
from bfinfra.sandbox import Running

KILLED = -signal.SIGKILL
LONG = 180  # seconds that a run may take on a machine that does much else
STALE, UNSIGNED, RENEWED = 3.0, 1.5, 0.3
"""Seconds: a lease's times, as short as lags allow."""
CALLS: Mapping[str, re.Pattern[bytes]] = {
    "create": re.compile(rb"<AddCustomFieldDef.*bfinfra lease ", re.DOTALL),
    "sign": re.compile(rb"<SetField.*by=\S+ since=\S+ n=1<", re.DOTALL),
    "begin": re.compile(rb"<SetField.* from:", re.DOTALL),
    "enter": re.compile(rb"<EnterMaintenanceMode_Task"),
    "renew": re.compile(rb"<SetField.*by=\S+ since=\S+ n=(?!1<)", re.DOTALL),
    "reboot": re.compile(rb"<RebootHost_Task"),
    "exit": re.compile(rb"<ExitMaintenanceMode_Task"),
    "remove": re.compile(rb"<RemoveCustomFieldDef"),
}
"""The calls of a run that restarts a host, in their order."""


@dataclass(frozen=True)
class Start:
    """One run. `machine`: the folder of its state, and its name; `lag`: seconds at most before each request, drawn
    by `seed`; `strike`: at which call and when it is killed.
    """

    site: Path
    machine: Path
    sandbox: Running | None = None
    destroy: bool = False
    seed: str = ""
    lag: float = 0
    strike: tuple[str, str] | None = None

    def begin(self) -> Any:
        """Its process."""
        self.machine.mkdir(parents=True, exist_ok=True)
        (self.machine / "ended.json").unlink(missing_ok=True)
        child = forks.Process(target=_child, args=(self,))
        child.start()
        return child

    def endings(self) -> dict[str, str]:
        """Address → how it ended; why nothing ran under ""."""
        return dict(json.loads((self.machine / "ended.json").read_text()))


class Meddling:
    """Middleware: lags, then the kill."""

    def __init__(self, inner: Any, start: Start, chance: random.Random) -> None:
        self._inner, self._start, self._chance = inner, start, chance

    def handle_request(self, request: Any) -> Any:
        time.sleep(self._chance.uniform(0, self._start.lag))
        call, when = self._start.strike or ("", "")
        struck = bool(call) and CALLS[call].search(request.read()) is not None
        if struck and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = self._inner.handle_request(request)
        if struck:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def close(self) -> None:
        self._inner.close()


def _child(start: Start) -> None:
    os.environ["BFINFRA_STATE_HOME"] = str(start.machine)
    chance = random.Random(start.seed)
    patient = RetryPolicy()  # the product's: pauses shorter than a lag let one of two lose each time
    context = bfinfra.RunContext(
        sandbox=start.sandbox, retry=patient, middleware=(lambda inner: Meddling(inner, start, chance),)
    )
    with (
        mock.patch.multiple(leases, STALE=STALE, UNSIGNED=UNSIGNED, RENEWED=RENEWED),
        mock.patch.object(process, "_machine", lambda: start.machine.name),  # nobody else can see it end
    ):
        try:
            found = endings(
                bfinfra.apply(
                    bfinfra.load(start.site, sandbox=start.sandbox)
                    if start.sandbox
                    else bfinfra.load(start.site),
                    approve=lambda _: EVERYTHING,
                    destroy=start.destroy,
                    options=Options(retry=patient, deadline=LONG),
                    context=context,
                )
            )
        except bfinfra.BfinfraError as error:
            found = {"": str(error)}
    (start.machine / "ended.json").write_text(json.dumps(found))


def together(*starts: Start, apart: float = 0) -> list[int]:
    """Run them side by side, the later ones so many seconds after; their exit codes."""
    children = []
    for start in starts:
        children.append(start.begin())
        time.sleep(apart)
    return [over(child) for child in children]


def over(child: Any) -> int:
    """Its exit code, waited for."""
    child.join(LONG + 60)
    if child.exitcode is None:
        child.kill()
        raise AssertionError("it does not end")
    return int(child.exitcode)


def ended_well(start: Start) -> None:
    bad = {where: how for where, how in start.endings().items() if how not in ("done", "kept")}
    assert not bad, bad
