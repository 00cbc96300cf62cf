"""Faults as data: rules that select calls and how they fail."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

APIS = ("vcenter", "rest", "kubernetes", "esx", "bitfusion", "ssh", "*")
DEEDS = (
    "delay",
    "status",
    "retry_after",
    "reset",
    "half",
    "expire",
    "soap",
    "task",
    "message",
    "kill",
    "when",
)
RENAMED = {"door": "api"}
"""Fields of a rule whose old names are accepted for one more release."""


class BadRule(ValueError):
    """A fault rule has a mistake."""


class Interrupted(BaseException):  # no Exception: an API's own error handling must not answer it
    """Instead of its answer the call gets another one, or none."""


class Reset(Interrupted):
    """The connection is reset."""


class Halved(Interrupted):
    """The answer breaks off in its middle."""


class Answered(Interrupted):
    """The call is answered with this status."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status, self.retry_after = status, retry_after


@dataclass(frozen=True)
class Deed:
    """The effect of a fault rule. `delay` in seconds; `reset`: "", before or after; `half`: the call is done
    and its answer breaks off; `expire`: every session and token ends just before; `soap`, `task`: name of a
    fault; `kill`: process id, `when` before or after.
    """

    delay: float = 0
    status: int = 0
    retry_after: float | None = None
    reset: str = ""
    half: bool = False
    expire: bool = False
    soap: str = ""
    task: str = ""
    message: str = ""
    kill: int = 0
    when: str = "after"


@dataclass
class Rule:
    """`method` and `object` are globs. Of the matching calls `times` fail, from the `nth` on, or each by
    `probability`.

    `times` is 1 where `nth` is given and without end where neither is. `writes`: only calls that write, or
    only those that don't.
    """

    do: Deed
    api: str = "*"
    method: str = "*"
    object: str = "*"
    nth: int = 1
    probability: float | None = None
    times: int | None = None
    writes: bool | None = None
    seen: int = 0
    done: int = 0

    def matches(self, api: str, method: str, objects: tuple[str, ...], *, writes: bool) -> bool:
        """Return whether the rule applies to this call."""
        return (
            self.writes in (None, writes)
            and self.api in ("*", api)
            and fnmatchcase(method, self.method)
            and (self.object == "*" or any(fnmatchcase(each, self.object) for each in objects))
        )

    def strikes(self) -> bool:
        """Count a matching call; whether this one fails."""
        self.seen += 1
        spent = self.times is not None and self.done >= self.times
        hit = random.random() < self.probability if self.probability is not None else self.seen >= self.nth  # noqa: S311 - chance, no secret
        self.done += hit and not spent
        return hit and not spent


@dataclass(frozen=True)
class Effect:
    """The part that the API itself carries out: answer a SOAP fault, end the task with one, fail with a
    message.
    """

    soap: str = ""
    task: str = ""
    message: str = ""


@dataclass
class Faults:
    """The rules in force. Safe to use from several threads."""

    rules: list[Rule] = field(default_factory=list)
    expire: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, data: object) -> None:
        """Add a rule, or a list of rules, from JSON values. Raises BadRule."""
        found = [rule(each) for each in (data if isinstance(data, list) else [data])]
        with self._lock:
            self.rules += found

    def clear(self) -> None:
        """Drop all rules."""
        with self._lock:
            self.rules.clear()

    def read(self) -> list[dict[str, Any]]:
        """The rules in force, with what they have `seen` and `done`, as JSON values."""
        with self._lock:
            return [asdict(each) for each in self.rules]

    @contextmanager
    def during(self, api: str, method: str, *objects: str, writes: bool = False) -> Iterator[Effect]:
        """Run a call between what its rules do before and after it. Raises Interrupted.

        `objects`: every name the call's object goes by (id, name, path). An API whose methods are not HTTP
        paths (SOAP) calls this itself; for the others the listener does.
        """
        deeds = self._struck(api, method, objects, writes=writes)
        for deed in deeds:
            if deed.expire:
                self.expire()
            _before(deed)
        try:
            yield Effect(
                *(
                    next((getattr(d, name) for d in deeds if getattr(d, name)), "")
                    for name in ("soap", "task", "message")
                )
            )
        finally:  # a fault is an answer as well
            for deed in deeds:
                _after(deed)

    def _struck(self, api: str, method: str, objects: tuple[str, ...], *, writes: bool) -> list[Deed]:
        with self._lock:
            return [
                each.do
                for each in self.rules
                if each.matches(api, method, objects, writes=writes) and each.strikes()
            ]


def old_names(rules: Iterable[Mapping[str, object]]) -> list[str]:
    """A sentence, "OLD is called NEW now", for each old name in these rules."""
    used = {name for each in rules for name in RENAMED.keys() & each.keys()}
    return [f"{name} is called {RENAMED[name]} now" for name in sorted(used)]


def rule(data: Any) -> Rule:
    """A rule from JSON values. BadRule names the field."""
    known = {each.name for each in fields(Rule)} - {"seen", "done"}
    if not isinstance(data, Mapping) or "do" not in data:
        raise BadRule("a rule is a mapping with `do`")
    data = {RENAMED.get(name, name): value for name, value in data.items()}
    if unknown := sorted(set(data) - known):
        raise BadRule(f"unknown {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    found = Rule(**{"times": 1 if "nth" in data else None, **data, "do": _deed(data["do"])})
    if found.api not in APIS:
        raise BadRule(f"api {found.api!r} is none of {', '.join(APIS)}")
    if not _counts(found):
        raise BadRule("nth is a number from 1, times one from 0, probability lies between 0 and 1")
    return found


def _counts(found: Rule) -> bool:
    chance = found.probability
    return (
        found.nth >= 1 and (found.times is None or found.times >= 0) and (chance is None or 0 <= chance <= 1)
    )


def _deed(data: object) -> Deed:
    if data in ("reset_before", "reset_after"):
        return Deed(reset=str(data).removeprefix("reset_"))
    if not isinstance(data, Mapping) or not data or set(data) - set(DEEDS):
        raise BadRule(f"do: write reset_before, reset_after or a mapping of {', '.join(DEEDS)}")
    found = Deed(**data)
    if found.when not in ("before", "after") or found.reset not in ("", "before", "after"):
        raise BadRule("do: when and reset are before or after")
    return found


def _before(deed: Deed) -> None:
    if deed.delay:
        time.sleep(deed.delay)
    if deed.kill and deed.when == "before":
        _kill(deed.kill)
    if deed.reset == "before":
        raise Reset
    if deed.status:
        raise Answered(deed.status, deed.retry_after)


def _after(deed: Deed) -> None:
    if deed.kill:
        _kill(deed.kill)
    if deed.reset == "after":
        raise Reset
    if deed.half:
        raise Halved


def _kill(pid: int) -> None:
    """Kill the caller; what it waited for it must never see."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    raise Reset
