"""How much of an answer is read, and for how long: bounds by the class of the answer, kept while it comes.

Bytes are counted as unpacked. What a parser makes of them costs many times as much (`[[],[],` or `<a/><a/>`
some twenty times), so what opens a value is counted too.
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
"""By the word in a content type: what each element, attribute or value begins with. Of any other kind of
content all of it is counted.
"""


class Overstepped(Exception):
    """An answer is too large, takes too long or can't be unpacked; `why` and `next` for whom it concerns."""

    def __init__(self, what: str, why: str, next: str) -> None:
        self.what, self.why, self.next = what, why, next
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Limit:
    """`size` in bytes; `pieces`: elements and attributes of XML, or values of JSON; `seconds` from the end of
    the request.
    """

    size: int
    pieces: int
    seconds: float


PAGE = Limit(
    64 * MIB, 2_000_000, 300
)  # of a bulk read: 500 machines or Kubernetes objects take a tenth of it
PLAIN = Limit(16 * MIB, 500_000, 120)
SMALL = Limit(1 * MIB, 50_000, 90)  # logins, versions, and words about what went wrong
DEPLOYED = Limit(1 * MIB, 50_000, 7200)  # a deployment from a library is answered when all disks are copied
LOG = Limit(2 * MIB, 2 * MIB, 120)  # twice what is asked for
SLOWEST = 50_000  # bytes a second of a part of a file
RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")
BULK = frozenset({"RetrievePropertiesEx", "ContinueRetrievePropertiesEx"})
ENTRANCE = re.compile(
    r"/(wcp/login|api/session|rest/com/vmware/cis/session|version|sdk/vimServiceVersions\.xml)"
)


def of(request: httpx2.Request, name: str) -> Limit:
    """The bounds of the answer to a request; `name` as the transport calls it."""
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
    """The body of an answer, unpacked, block by block. Overstepped where there is more than the limit, or it
    can't be unpacked.
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
        """Let go of the connection."""
        self._response.close()


def _opens(response: httpx2.Response) -> tuple[bytes, ...]:
    kind = response.headers.get("content-type", "").lower()
    return next((signs for word, signs in OPENS.items() if word in kind), OPENS["xml"] + OPENS["json"])


class Until(float):
    """The longest that one read may take, in seconds, that also knows how long `whole` may take: every read
    of an answer together.
    """

    whole: float

    @classmethod
    def within(cls, request: httpx2.Request, limit: Limit) -> dict[str, object]:
        """The request's extensions with both bounds in its read time-out."""
        timeouts = request.extensions.get("timeout") or {}
        made = cls(min(timeouts.get("read") or limit.seconds, limit.seconds))
        made.whole = limit.seconds
        return {**request.extensions, "timeout": {**timeouts, "read": made}}


class Timed(httpcore2.NetworkStream):
    """A stream whose answers have an end: what drips, header or body, is given up after the time of its
    class.
    """

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._asked = time.monotonic()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes; Overstepped where the answer's time is over."""
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
        """Send; the time of the answer begins anew."""
        self._inner.write(buffer, timeout)
        self._asked = time.monotonic()

    def close(self) -> None:
        """Close the inner stream."""
        self._inner.close()

    def get_extra_info(self, info: str) -> object:
        """What the inner stream knows."""
        return self._inner.get_extra_info(info)


_CHECK = "see what answers at this address: no server that bfinfra knows sends that"


def _too_slow(timeout: Until) -> Overstepped:
    return Overstepped(
        "takes too long",
        f"it was not whole after {timeout.whole:g} s",
        "see whether the server is overloaded, or something between slows it down",
    )


def _too_large(why: str) -> Overstepped:
    return Overstepped("is too large", why, _CHECK)
