"""A Site with what the keeper knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bfinfra.model.records import dataclass
from bfinfra.operator.desired import Desired
from bfinfra.operator.result import Result


@dataclass
class Held:
    """A Site, and what only this process knows. `recorded`: the check whose result is in the status;
    `misses`: transient failures in a row; `result`: the last result, of the check that started at `looked`;
    `refusals`: how often in a row the API server refused a write; `stuck`: why the pod of its check does not
    start; `shown`: when the differences changed that a watcher reported and the status has; `unfollowed`:
    since when no watcher follows it; `written`: this process wrote its status.
    """

    wanted: Desired
    due: float = 0
    busy: bool = False
    recorded: str = ""
    misses: int = 0
    result: Result | None = None
    looked: float = 0
    refusals: int = 0
    stuck: str = ""
    shown: str = ""
    unfollowed: float = 0
    written: bool = False

    @property
    def row(self) -> tuple[Desired, Result | None, float]:
        """What its metrics show."""
        return self.wanted, self.result, self.looked

    def take(self, wanted: Desired) -> None:
        """The Site changed. Its status is the one that this process wrote last, even if an older event says
        otherwise; what watchers write into it is the event's.
        """
        status = _with_watch(self.wanted.status, wanted.status) if self.written else wanted.status
        self.wanted = replace(wanted, status=status, watched=self.wanted.watched)

    def watched(self, now: bool) -> None:
        """Whether a watcher follows it now."""
        if self.wanted.watched != now:
            self.wanted = replace(self.wanted, watched=now)

    def wrote(self, wanted: Desired, status: Mapping[str, object], version: str) -> None:
        """This status is written, and was made of `wanted`; the Site may have changed meanwhile."""
        self.written = True
        if self.wanted is wanted:
            self.wanted = replace(wanted, status=status, version=version)
        else:
            self.wanted = replace(self.wanted, status=_with_watch(status, self.wanted.status))


def _with_watch(status: Mapping[str, object], newer: Mapping[str, object]) -> Mapping[str, object]:
    """The status, with the watchers' part of a newer one."""
    watch = {"watch": newer["watch"]} if "watch" in newer else {}
    return {name: value for name, value in status.items() if name != "watch"} | watch
