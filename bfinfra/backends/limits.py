"""Limits the size and time of answers, by their class, while they are read.

Sizes count uncompressed bytes. A parser's result is many times as large (`[[],[],` or `<a/><a/>` some twenty
times), so the start of each value is counted too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import httpcore2
import httpx2

from bfinfra.model.records import dataclass

MIB = 1 << 20
OPENS = {"xml": (b"<", b"="), "json": (b"{", b"[", b",")}
"""By a word of the content type: how each element, attribute or value starts. For other types everything
counts.
"""


class Overstepped(Exception):
    """An answer is too large, takes too long or can't be decompressed; `why` and `next` are for the
    person.
    """

    def __init__(self, what: str, why: str, next: str) -> None:
        self.what, self.why, self.next = what, why, next
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Limit:
    """`size`: bytes; `pieces`: elements and attributes of XML, or values of JSON; `seconds` from the end of
    the request.
    """

    size: int
    pieces: int
    seconds: float


PAGE = Limit(
    64 * MIB, 2_000_000, 300
)  # of a bulk read: 500 machines or Kubernetes objects take a tenth of it
PLAIN = Limit(16 * MIB, 500_000, 120)
SMALL = Limit(1 * MIB, 50_000, 90)  # logins, versions, and errors
DEPLOYED = Limit(1 * MIB, 50_000, 7200)  # a deployment from a library is answered after all disks are copied
LOG = Limit(2 * MIB, 2 * MIB, 120)  # twice the requested size
SLOWEST = 50_000  # bytes a second of a part of a file
RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")
BULK = frozenset({"RetrievePropertiesEx", "ContinueRetrievePropertiesEx"})
ENTRANCE = re.compile(
    r"/(wcp/login|api/session|rest/com/vmware/cis/session|version|sdk/vimServiceVersions\.xml)"
)


def of(request: httpx2.Request, name: str) -> Limit:
    """The limit of the answer to a request; `name`: the transport's name for it."""
    path = request.url.path
    if asked := RANGE.fullmatch(request.headers.get("range", "")):
        size = int(asked[2]) - int(asked[1]) + 1
        return Limit(size, size, max(PLAIN.seconds, size / SLOWEST))
    if ENTRANCE.fullmatch(path) or name in ("Login", "Logout"):
        return SMALL
    if path.startswith("/api/vcenter/ovf/library-item/"):
        return DEPLOYED
    if request.method == "GET" and path.endswith("/log"):
        return LOG
    return PAGE if name in BULK or (request.method == "GET" and "limit" in request.url.params) else PLAIN


class Bounded(httpx2.SyncByteStream):
    """An answer's body, uncompressed, block by block. Raises Overstepped if it exceeds the limit, or can't be
    decompressed.
    """

    def __init__(self, response: httpx2.Response, limit: Limit) -> None:
        self._response, self._limit = response, limit if response.status_code < 400 else SMALL

    def __iter__(self) -> Iterator[bytes]:
        limit = self._limit
        opens = _opens(self._response) if limit.pieces < limit.size else ()
        size = pieces = 0
        try:
            for block in self._response.iter_bytes():
                size += len(block)
                pieces += sum(map(block.count, opens))
                if size > limit.size:
                    raise _too_large(f"more than {limit.size // MIB} MiB came")
                if pieces > limit.pieces:
                    raise _too_large(f"more than {limit.pieces:,} values came, in {size:,} bytes")
                yield block
        except httpx2.DecodingError:
            packed = self._response.headers.get("content-encoding", "")
            raise Overstepped(
                "can't be unpacked", f"it is not the {packed[:40]!r} that it says", _CHECK
            ) from None

    def close(self) -> None:
        """Release the connection."""
        self._response.close()


def _opens(response: httpx2.Response) -> tuple[bytes, ...]:
    kind = response.headers.get("content-type", "").lower()
    return next((signs for word, signs in OPENS.items() if word in kind), OPENS["xml"] + OPENS["json"])


class Until(float):
    """The longest time for one read, in seconds, which also has the limit for `whole`: all reads of an
    answer.
    """

    whole: float

    @classmethod
    def within(cls, request: httpx2.Request, limit: Limit) -> dict[str, object]:
        """The request's extensions with both limits in its read time-out."""
        timeouts = request.extensions.get("timeout") or {}
        made = cls(min(timeouts.get("read") or limit.seconds, limit.seconds))
        made.whole = limit.seconds
        return {**request.extensions, "timeout": {**timeouts, "read": made}}


class Timed(httpcore2.NetworkStream):
    """A stream with a time limit for each answer, header and body, so that a slow one ends."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._asked = time.monotonic()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes. Raises Overstepped if the answer's time is over."""
        if not isinstance(timeout, Until):
            return self._inner.read(max_bytes, timeout)
        left = self._asked + timeout.whole - time.monotonic()
        if left <= 0:
            raise _too_slow(timeout)
        try:
            return self._inner.read(max_bytes, min(timeout, left))
        except httpcore2.ReadTimeout:
            if left < timeout:
                raise _too_slow(timeout) from None
            raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; the time of the answer starts again."""
        self._inner.write(buffer, timeout)
        self._asked = time.monotonic()

    def close(self) -> None:
        """Close the inner stream."""
        self._inner.close()

    def get_extra_info(self, info: str) -> object:
        """The inner stream's information."""
        return self._inner.get_extra_info(info)


_CHECK = "check what answers at this address: no server that bfinfra knows sends that"


def _too_slow(timeout: Until) -> Overstepped:
    return Overstepped(
        "takes too long",
        f"it was not complete after {timeout.whole:g} s",
        "check whether the server is overloaded, or the network is slow",
    )


def _too_large(why: str) -> Overstepped:
    return Overstepped("is too large", why, _CHECK)
