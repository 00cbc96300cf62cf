"""Follows the objects that a site made in a cluster. (Kubernetes API, efficient detection of changes.)"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from bfinfra.backends.kubernetes import errors
from bfinfra.backends.network import interrupt
from bfinfra.model.errors import RemoteError, Unanswered, Unreachable

if TYPE_CHECKING:
    import httpx2

    from bfinfra.backends.kubernetes.cluster import ClusterClient, Object, Selected

LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
WHOLE = "application/json"
ONE = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class ObjectChanges:
    """The changes of one selection, from `start` or `all` on. Of each object only its metadata is read, or
    with `whole` everything.
    """

    def __init__(self, client: ClusterClient, of: Selected, *, whole: bool = False) -> None:
        self._client, self._of = client, of
        self._accepts = (WHOLE, WHOLE) if whole else (LIST, ONE)
        self.cluster, self.kind = client.name, of.kind
        self.left = False
        self._revision = ""
        self._cancelled = False
        self._answer: httpx2.Response | None = None

    @property
    def started(self) -> bool:
        """Whether the changes since the last call are still to be had. If not, `start` comes next."""
        return bool(self._revision)

    def leave(self) -> None:
        """The cluster has no such objects. `left` is true from then on."""
        self._client.selected.discard(self._of)
        self.left = True

    def start(self) -> None:
        """Note the present state. Raises RemoteError."""
        self._page(limit="1")

    def all(self) -> list[Object]:
        """The objects that there are. Raises RemoteError."""
        return self._client.paged(self._all)

    def _all(self, size: int) -> list[Object]:
        items, more = self._page(limit=str(size))
        while more:
            page, more = self._page(**{"limit": str(size), "continue": more})
            items += page
        return items

    def _page(self, **params: str) -> tuple[list[Object], str]:
        page = self._client.json(self._client.path_of(self._of), self._params(**params), self._accepts[0])
        try:
            self._revision = str(page["metadata"]["resourceVersion"])
            return list(page.get("items") or ()), str(page["metadata"].get("continue") or "")
        except (KeyError, TypeError, AttributeError):
            raise errors.malformed(
                f"list {self._of.kind}", self._client.name, "it has no resourceVersion"
            ) from None

    def wait(
        self,
        seconds: int,
        take: Callable[[Object], None],
        gone: Callable[[Object], None] | None = None,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `begun` once the cluster answers, `take` with each object that changes within so many seconds
        from the end of the last call on, and `gone`, or `take`, with each that goes. Raises RemoteError:
        later changes are unknown unless `started`.
        """
        lost, answered = "", False

        def opened(answer: httpx2.Response) -> None:
            nonlocal answered
            self._answer, answered = answer, True
            if self._cancelled:
                interrupt(answer)
            begun()

        def see(line: str) -> None:
            nonlocal lost
            event = json.loads(line)
            if event["type"] == "ERROR":
                lost = str(event["object"].get("message") or "the server ended it")
                return
            self._revision = str(event["object"]["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK":
                (gone or take if event["type"] == "DELETED" else take)(event["object"])

        params = self._params(
            watch="1", allowWatchBookmarks="true", resourceVersion=self._revision, timeoutSeconds=str(seconds)
        )
        try:
            self._client.lines(self._client.path_of(self._of), params, self._accepts[1], see, opened)
        except RemoteError as error:
            if lost or not (answered and isinstance(error, Unreachable | Unanswered)):
                self._revision = ""
            raise
        if lost:
            self._revision = ""
            raise Unanswered(
                f"changes of {self._of.kind} can't be followed", server=self._client.name, why=lost
            )

    def cancel(self) -> None:
        """End a `wait` in another thread. The connection is closed by the thread that reads it."""
        self._cancelled = True
        if self._answer is not None:
            interrupt(self._answer)

    def _params(self, **further: str) -> dict[str, str]:
        return {"labelSelector": self._of.labels, **further}
