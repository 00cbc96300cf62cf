"""An OVA at an HTTP(S) address: parts of it are requested by range, nothing is stored, and an interrupted
part continues.

No account is sent. A few redirects are followed, never from https to http; a pinned certificate is that of
the first server only.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

from bfinfra.backends.ova.source import BUFFER, refusal
from bfinfra.model.errors import Busy, Missing, Unanswered, Unreachable
from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust

if TYPE_CHECKING:
    import httpx2
    from typing_extensions import Buffer

    from bfinfra.backends.transport import Transport

HOPS = 5  # redirects
TIMES = 4  # interruptions in a row without a byte
PASSING = (Unreachable, Busy, Unanswered)
RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
NEXT = "download it, and give the file"


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """`url` as in the site. `state`: the server's own name for this version of the file."""

    url: str
    size: int
    state: str
    _trust: Trust = field(repr=False, compare=False)
    _transport: Transport = field(repr=False, compare=False)
    far: bool = True

    @property
    def name(self) -> PurePath:
        """The last part of the address."""
        return named(self.url)

    @property
    def where(self) -> str:
        """The address without its query, which may be a key."""
        return plain(self.url)

    @classmethod
    def of(cls, url: str, trust: Trust, transport: Transport) -> RemoteSource:
        """The source with the server's current version. Raises RemoteError; Refusal if it doesn't answer
        parts.
        """
        answer = _ask(transport, trust, url, 0, 1)
        answer.close()
        if not answer.state:
            raise refusal(
                named(url),
                "its server doesn't say which version of the file it has",
                "it sends neither an ETag nor a time of change",
                NEXT,
            )
        return cls(url, answer.total, answer.state, trust, transport)

    def part(self, offset: int, size: int) -> BinaryIO:
        """A stream of a part. Raises Refusal if the server has another version now."""
        return io.BufferedReader(_Part(self, offset, size), BUFFER)

    def ask(self, offset: int, size: int) -> _Answer:
        """Send one request."""
        answer = _ask(self._transport, self._trust, self.url, offset, size)
        if (answer.total, answer.state) == (self.size, self.state):
            return answer
        answer.close()
        raise refusal(self.name, "it was changed while bfinfra worked with it", next="run again")


class _Part(io.RawIOBase):
    """Bytes from `offset` on, with as many requests as needed."""

    def __init__(self, source: RemoteSource, offset: int, size: int) -> None:
        super().__init__()
        self._source, self._offset, self._left, self._failed = source, offset, size, 0
        self._answer: _Answer | None = None
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        while self._left and not self._block:
            self._fetch()
        count = min(len(view), len(self._block), self._left)
        view[:count], self._block = self._block[:count], self._block[count:]
        self._offset, self._left = self._offset + count, self._left - count
        return count

    def _fetch(self) -> None:
        try:
            if self._answer is None:
                self._answer = self._source.ask(self._offset, self._left)
            self._block = memoryview(next(self._answer.blocks, b""))
            if not self._block:
                raise Unreachable("the answer ended early", server=self._answer.server)
            self._failed = 0
        except PASSING:
            self._forget()
            self._failed += 1
            if self._failed == TIMES:
                raise

    def _forget(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._forget()
        super().close()


@dataclass(frozen=True)
class _Answer:
    """The answer to a request for some bytes, with the size and version of the whole ("" if unknown)."""

    http: httpx2.Client
    response: httpx2.Response
    total: int
    state: str
    blocks: Iterator[bytes]

    @property
    def server(self) -> str:
        return _server(self.response)

    def close(self) -> None:
        """Let go of the connection."""
        self.response.close()
        self.http.close()


def _ask(transport: Transport, trust: Trust, url: str, offset: int, size: int) -> _Answer:
    """The answer after all redirects."""
    name, first = named(url), _origin(url)
    wanted = {"Range": f"bytes={offset}-{offset + size - 1}", "Accept-Encoding": "identity"}
    for _ in range(HOPS + 1):
        http = transport.client(
            _origin(url), trust if _origin(url) == first else Trust(ca_file=trust.ca_file), public=True
        )
        try:
            response = http.send(http.build_request("GET", url, headers=wanted), stream=True)
            onward = _onward(name, url, response)
            if not onward:
                return _answer(name, http, response, offset)
        except BaseException:
            http.close()
            raise
        response.close()
        http.close()
        url = onward
    raise refusal(name, f"its server redirects more than {HOPS} times", next=NEXT)


def _onward(name: PurePath, url: str, response: httpx2.Response) -> str:
    if response.status_code not in (301, 302, 303, 307, 308):
        return ""
    onward = response.url.join(response.headers.get("location", ""))
    if onward.scheme != "https" and not (onward.scheme == "http" and url.startswith("http://")):
        raise refusal(name, f"its server redirects to {plain(str(onward))}", "that is not https", NEXT)
    return str(onward.copy_with(userinfo=b"", fragment=None))


def _answer(name: PurePath, http: httpx2.Client, response: httpx2.Response, offset: int) -> _Answer:
    status, content_range = response.status_code, RANGE.fullmatch(response.headers.get("content-range", ""))
    if status == 200:
        raise refusal(
            name, "its server answers the whole file only", "parts of it are asked for by range", NEXT
        )
    if status in (408, 429, 500, 502, 503, 504):
        raise Busy(
            f"{name.name} can't be downloaded now", server=_server(response), why=f"it answers {status}"
        )
    if status != 206:
        raise Missing(
            f"{name.name} can't be downloaded",
            server=_server(response),
            why=f"it answers {status}",
            next="check ova.url",
        )
    if content_range is None or int(content_range[1]) != offset:
        raise refusal(name, "its server answers another part than requested", next=NEXT)
    state = response.headers.get("etag", "") or response.headers.get("last-modified", "")
    return _Answer(http, response, int(content_range[3]), state, response.iter_raw())


def _server(response: httpx2.Response) -> str:
    return f"{response.url.host}:{response.url.port or {'http': 80}.get(response.url.scheme, 443)}"


def named(url: str) -> PurePath:
    """The file's name in an address."""
    return PurePosixPath(unquote(plain(url).rstrip("/").rpartition("/")[2]) or "ova")


def plain(url: str) -> str:
    """An address without account, query and fragment."""
    scheme, _, rest = url.partition("://")
    host, slash, path = re.split(r"[?#]", rest)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
