"""Waits for vCenter's tasks, with a collector for each waiter, so that none loses updates to another."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyVmomi import vim, vmodl

from bfinfra.backends.vcenter import faults, properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Expired, Missing, RemoteError, StillRunning, Unanswered, Unreachable
from bfinfra.model.waits import Wait

ROUND = 20  # seconds of each wait call at most, well below the transport's read time-out
Progress = Callable[[int], None]
T = TypeVar("T")
Values = Mapping[str, Any]
"""Properties by path."""
Collector = vmodl.query.PropertyCollector


class Tasks:
    """Starts tasks and waits for their end."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def run(
        self, start: Callable[[Any], Any], what: str, *, progress: Progress | None = None, limit: float = 3600
    ) -> Any:
        """Start a task (`start` gets ServiceContent) and return its result. `limit` in seconds.

        Raises RemoteError: the task's own fault, StillRunning if it takes too long, Unanswered if its end is
        unknown.
        """
        task = self._session.write(start)
        return self.wait(task, what, progress=progress, limit=limit)

    def wait(self, task: object, what: str, *, progress: Progress | None = None, limit: float = 3600) -> Any:
        """Wait for a task's end and return its result; `progress` gets percent."""

        def ended(values: Values) -> bool:
            info = values.get("info")
            if progress and info is not None and isinstance(info.progress, int):
                progress(info.progress)
            return info is not None and info.state in ("success", "error")

        info = self.watch(task, ("info",), ended, what, limit=limit)[
            "info"
        ]  # the whole object, so that its end comes with its result
        if info.state == "error":
            error = faults.of_fault(info.error, f"{what} failed", self._session.server)
            if isinstance(info.error, vim.fault.Timedout):  # its caller has told vCenter when to give up
                why = f"vCenter gave up: {error.problems[0].why}"
                raise StillRunning(f"{what} is not over", server=self._session.server, why=why)
            raise error
        return info.result

    def watch(
        self,
        ref: object,
        paths: tuple[str, ...],
        enough: Callable[[Values], bool],
        what: str,
        *,
        limit: float,
    ) -> Values:
        """Follow an object's properties until `enough` accepts them, and return them. Raises StillRunning
        after `limit` seconds, Unanswered if the session is lost.
        """
        wait = Wait(what, limit, server=self._session.server)
        try:
            return self._follow(self._session.content(), ref, paths, enough, wait)
        except Missing:
            raise
        except (Unreachable, Expired) as error:
            raise Unanswered(
                f"{what} was started, its end is not known", server=self._session.server, why=str(error)
            ) from None

    def _follow(
        self,
        content: vim.ServiceInstanceContent,
        ref: object,
        paths: tuple[str, ...],
        enough: Callable[[Values], bool],
        wait: Wait,
    ) -> Values:
        collector = content.propertyCollector.CreatePropertyCollector()
        try:
            wanted = Collector.PropertySpec(type=type(ref), pathSet=list(paths), all=False)
            collector.CreateFilter(
                Collector.FilterSpec(objectSet=[Collector.ObjectSpec(obj=ref)], propSet=[wanted]),
                partialUpdates=False,
            )
            values: dict[str, Any] = {}
            version = ""
            while True:
                seconds = max(1, min(ROUND, math.ceil(wait.left())))
                ask = functools.partial(
                    collector.WaitForUpdatesEx, version, Collector.WaitOptions(maxWaitSeconds=seconds)
                )
                update = self._waited(ask, functools.partial(properties.one, content, ref, []))
                version = update.version if update else version
                values |= _changes(update, ref, self._session.server)
                if enough(values):
                    return values
                wait.check(_progress(values))
        finally:
            _drop(collector)

    def _waited(self, wait: Callable[[], T], look: Callable[[], object]) -> T:
        """Return the changes since. Raises Missing if `look` finds that the object is gone; if only the
        collector is, the object is unknown.
        """
        try:
            return wait()
        except Missing as error:
            look()
            raise Expired(
                "the server dropped the wait", server=self._session.server, why=error.problems[0].why
            ) from None


def _changes(update: Any, ref: Any, server: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in (e for part in (update.filterSet if update else ()) for e in part.objectSet or ()):
        if entry.kind == "leave":
            raise Missing(f"{refs.moid(ref)} is gone", server=server)
        for missing in entry.missingSet or ():
            if not isinstance(missing.fault, vmodl.query.InvalidProperty):
                raise faults.of_fault(missing.fault, f"{missing.path} can't be followed", server)
        values |= {c.name: c.val for c in entry.changeSet or ()}
    return values


def _progress(values: Values) -> str:
    """What a task shows of itself."""
    info = values.get("info")
    return (
        ""
        if info is None
        else f"its task in vCenter is {info.state}"
        + (f" at {info.progress} %" if isinstance(info.progress, int) else "")
    )


def _drop(collector: Any) -> None:
    with contextlib.suppress(RemoteError):  # it ends with the session
        collector.DestroyPropertyCollector()
