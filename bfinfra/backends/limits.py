"""Limits the size and time of answers, by their class, while they are read.

Sizes count uncompressed bytes. A parser's result is many times as large (`[[],[],` or `<a/><a/>` some twenty
times; text with one emoji nine times), so the start of each value is counted too.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator

import httpcore2
import httpx2

from bfinfra.backends.archives.bounds import BadArchive
from bfinfra.backends.archives.packed import unpacked
from bfinfra.model import waits
from bfinfra.model.records import dataclass

MIB = 1 << 20
ACCEPTED = "gzip, deflate"  # what `Bounded` unpacks
XML, JSON = (b"<", b"="), (b"{", b"[", b",")
"""How each element, attribute or value starts."""
BLANK = b" \t\r\n\0\xef\xbb\xbf\xfe\xff"
"""What may stand before the first of them: blanks, and marks of an encoding."""


class Overstepped(Exception):
    """An answer is too large, takes too long or can't be decompressed; `why` and `next` are for the
    person.

    `large`: another answer, to a question about less, may not be.
    """

    def __init__(self, what: str, why: str, next: str, *, large: bool = False) -> None:
        self.what, self.why, self.next, self.large = what, why, next, large
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Limit:
    """`size`: bytes; `pieces`: elements and attributes of XML, or values of JSON; `seconds` from the end of
    the request.
    """

    size: int
    pieces: int
    seconds: float


# What a limit's answer costs at most with all that is made of it, in tests/backends/test_costs.py: 200 MiB.
ROWS = Limit(40 * MIB, 600_000, 300)  # of vCenter, read by lxml: 500 machines take a third of it
PAGE = Limit(16 * MIB, 500_000, 300)  # of Kubernetes; where 500 objects are larger, fewer are asked for
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
    if name in BULK:
        return ROWS
    return PAGE if request.method == "GET" and "limit" in request.url.params else PLAIN


class Bounded(httpx2.SyncByteStream):
    """An answer's body, uncompressed, block by block. Raises Overstepped if it exceeds the limit, or can't be
    decompressed.
    """

    def __init__(self, response: httpx2.Response, limit: Limit) -> None:
        self._response, self._limit = response, limit if response.status_code < 400 else SMALL

    def __iter__(self) -> Iterator[bytes]:
        limit = self._limit
        signs: tuple[bytes, ...] = ()
        uncounted: list[bytes] = []
        size = pieces = 0
        for block in self._unpacked():
            if not size:
                signs = _signs(block)
            size += len(block)
            if size > limit.size:
                raise _too_large(f"more than {limit.size // MIB} MiB came")
            uncounted.append(block)
            if size > limit.pieces:  # else there can't be as many
                pieces += sum(each.count(sign) for each in uncounted for sign in signs)
                uncounted.clear()
                if pieces > limit.pieces:
                    raise _too_large(f"more than {limit.pieces:,} values came, in {size:,} bytes")
            yield block

    def _unpacked(self) -> Iterator[bytes]:
        """httpx2 would unpack as well, up to five times over, and keep all that follows the end."""
        response = self._response
        if response.is_stream_consumed:  # it was made in this process
            return response.iter_bytes()
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed in ("", "identity"):
            return response.iter_raw()
        if packed not in ACCEPTED.split(", "):
            raise _wrongly_packed(packed, f"bfinfra accepts {ACCEPTED}")
        return _unpacked(self._raw(), packed)

    def _raw(self) -> Iterator[bytes]:
        """As it comes. What is packed may not be larger than what is not."""
        size = 0
        for block in self._response.iter_raw():
            size += len(block)
            if size > self._limit.size:
                raise _too_large(f"more than {self._limit.size // MIB} MiB came, packed")
            yield block

    def close(self) -> None:
        """Release the connection."""
        self._response.close()


def _unpacked(blocks: Iterator[bytes], packed: str) -> Iterator[bytes]:
    first = next(blocks, b"")
    while len(first) == 1 and (more := next(blocks, b"")):
        first += more
    if not first:
        return  # an answer without a body
    bare = packed == "deflate" and (first[0] & 0x0F != 8 or int.from_bytes(first[:2], "big") % 31)
    try:
        yield from unpacked(itertools.chain((first,), blocks), "raw deflate" if bare else packed)
    except BadArchive as error:
        raise _wrongly_packed(packed, error.why) from None


def _signs(start: bytes) -> tuple[bytes, ...]:
    """By how a document starts, as its parser sees it: what the server calls it may be wrong."""
    start = start.lstrip(BLANK)
    return XML if start.startswith(b"<") else JSON if start else XML + JSON


class Until(float):
    """The longest time for one read, in seconds, which also has the limit for `whole`: all reads of an
    answer.
    """

    whole: float

    @classmethod
    def within(cls, request: httpx2.Request, limit: Limit) -> dict[str, object]:
        """The request's extensions with both limits in its read time-out. None is much longer than the step
        has.
        """
        given = request.extensions.get("timeout") or {}
        timeouts = {name: seconds and waits.capped(seconds) for name, seconds in given.items()}
        whole = waits.capped(limit.seconds)
        made = cls(min(timeouts.get("read") or whole, whole))
        made.whole = whole
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
    return Overstepped("is too large", why, _CHECK, large=True)


def _wrongly_packed(packed: str, why: str) -> Overstepped:
    more = f" ({why})" if why else ""
    return Overstepped("can't be unpacked", f"it is not the {packed[:40]!r} that it says{more}", _CHECK)
