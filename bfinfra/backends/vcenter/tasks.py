"""Waits for vCenter's tasks, with a collector for each waiter, so that none loses updates to another."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyVmomi import vim, vmodl

from bfinfra.backends.vcenter import faults, properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import Busy, Expired, Missing, RemoteError, Unanswered, Unreachable

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

        Raises RemoteError: the task's own fault, or Unanswered if its end is unknown.
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
            raise faults.of_fault(info.error, f"{what} failed", self._session.server)
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
        """Follow an object's properties until `enough` accepts them, and return them. Raises Unanswered after
        `limit` seconds or if the session is lost.
        """
        try:
            return self._follow(self._session.content(), ref, paths, enough, time.monotonic() + limit)
        except Missing:
            raise
        except TimeoutError:
            raise Busy(
                f"{what} still runs", server=self._session.server, why=f"it did not end in {limit:.0f} s"
            ) from None
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
        deadline: float,
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
                seconds = max(1, min(ROUND, math.ceil(deadline - time.monotonic())))
                wait = functools.partial(
                    collector.WaitForUpdatesEx, version, Collector.WaitOptions(maxWaitSeconds=seconds)
                )
                update = self._waited(wait, functools.partial(properties.one, content, ref, []))
                version = update.version if update else version
                values |= _changes(update, ref, self._session.server)
                if enough(values):
                    return values
                if time.monotonic() > deadline:
                    raise TimeoutError
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


def _drop(collector: Any) -> None:
    with contextlib.suppress(RemoteError):  # it ends with the session
        collector.DestroyPropertyCollector()
