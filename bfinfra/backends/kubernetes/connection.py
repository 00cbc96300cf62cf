"""The login to one Kubernetes API, and requests with it."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bfinfra.backends.kubernetes import errors
from bfinfra.backends.transport import TooLarge
from bfinfra.model.errors import Denied, Expired, Unreachable, Untrusted

if TYPE_CHECKING:
    import httpx2

    from bfinfra.backends.kubernetes.access import Access
    from bfinfra.backends.kubernetes.link import Link
    from bfinfra.backends.transport import Transport

T = TypeVar("T")
PAGES = (500, 50, 5)
"""Objects for each list request: fewer where they are large. etcd keeps 1.5 MiB of one."""


class Connection:
    """Logs in at the first request, and again when the token has expired. Raises RemoteError and its
    subclasses; safe in several threads.
    """

    def __init__(self, transport: Transport, name: str, enter: Callable[[], Access]) -> None:
        self.name = name
        self._transport = transport
        self._enter = enter
        self._link: Link | None = None
        self._users: Counter[Link] = Counter()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Cluster({self.name})"

    @property
    def url(self) -> str:
        """The URL after login, https://host:port; "" before it."""
        return self._link.access.url if self._link else ""

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            link, self._link = self._link, None
        if link:
            link.close()

    def access(self) -> Access:
        """The current login; made now if there is none."""
        return self._linked().access

    def _linked(self) -> Link:
        from bfinfra.backends.kubernetes.link import Link  # noqa: PLC0415 - lightkube is loaded when a cluster is first asked

        with self._lock:
            if self._link is None or self._link.access.spent:
                made = Link(self._transport, self._enter(), self.name)
                self._retire(self._link)
                self._link = made
            return self._link

    @contextmanager
    def _used(self) -> Iterator[Link]:
        """The login, whose connections are not closed meanwhile."""
        link = self._linked()
        with self._lock:
            self._users[link] += 1
        try:
            yield link
        finally:
            with self._lock:
                self._users[link] -= 1
                if link is not self._link:
                    self._retire(link)

    def _retire(self, link: Link | None) -> None:
        """Close the connections of a login that is not used: a process that runs for months has many."""
        if link is not None and not self._users[link]:
            del self._users[link]
            link.close()

    def _do(self, call: Callable[[Link], T]) -> T:
        """Run a request. If the server refuses the login itself, log in again and repeat it once: nothing was
        done yet.
        """
        with self._used() as link:
            try:
                return _sensible(call, link, self.name)
            except Expired:
                self._forget(link)
            except (Unreachable, Untrusted):
                self._forget(link)  # a recreated cluster of the same name has another address and authority
                raise
        try:
            with self._used() as link:
                return _sensible(call, link, self.name)
        except Expired as error:
            raise Denied(
                "the login is not accepted",
                server=self.name,
                why=error.problems[0].why,
                next="check the account, or create the kubeconfig again",
            ) from None

    def _forget(self, link: Link) -> None:
        with self._lock:
            if self._link is link:
                self._link = None

    def paged(self, read: Callable[[int], T]) -> T:
        """The result of `read`, which asks for so many objects at a time; again for fewer if the answer is
        too large.
        """
        for size in PAGES[:-1]:
            with contextlib.suppress(TooLarge):
                return read(size)
        return read(PAGES[-1])

    def json(self, path: str, params: Mapping[str, str], accept: str) -> Any:
        """The JSON at this path."""
        return self._json(path, params, accept)

    def lines(
        self,
        path: str,
        params: Mapping[str, str],
        accept: str,
        take: Callable[[str], None],
        opened: Callable[[httpx2.Response], None] = lambda _: None,
    ) -> None:
        """Call `opened` with the response, then `take` with each line of its stream, as it arrives."""

        def read(link: Link) -> None:
            with link.raw.stream("GET", path, params=params, headers={"Accept": accept}) as answer:
                opened(answer)
                for line in answer.iter_lines():
                    take(line)

        self._do(read)

    def _json(
        self, path: str, params: Mapping[str, str] | None = None, accept: str = "application/json"
    ) -> Any:
        return self._do(lambda link: link.raw.get(path, params=params, headers={"Accept": accept}).json())


def _sensible(call: Callable[[Link], T], link: Link, server: str) -> T:
    """Turn a body that can't be decoded into the server's error."""
    try:
        return call(link)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise errors.malformed("read the answer", server, type(error).__name__) from None
