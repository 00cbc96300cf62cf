"""HTTP over real sockets: where a connection goes, and which certificate it accepts."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpcore2
import httpx2

from bfinfra.backends import limits, tls, writes
from bfinfra.model.errors import Untrusted

ERRNO = re.compile(r"^\[Errno -?\d+\] ")
CONNECTIONS = 64  # for each client: ten workers, their uploads and their watches


class Network(httpx2.BaseTransport):
    """HTTP over real sockets, routed, with a pin checked at each handshake."""

    def __init__(
        self, context: ssl.SSLContext, pin: str, where: Callable[[str, int], tuple[str, int]]
    ) -> None:
        self._sockets = _Sockets(pin, where)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=30,
            network_backend=self._sockets,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises httpx2's errors and, for certificates, Untrusted."""
        url = request.url
        core = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=limits.Until.within(request, limits.of(request, writes.name(request))),
        )
        with as_httpx():
            answer = self._pool.handle_request(core)
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=Body(answer.stream, as_httpx),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close all connections, and those that another thread makes meanwhile."""
        self._sockets.closed = True
        self._pool.close()


class _Sockets(httpcore2.SyncBackend):
    def __init__(self, pin: str, where: Callable[[str, int], tuple[str, int]]) -> None:
        self.pin = pin
        self.closed = False
        self._where = where

    def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        address = self._where(host, port)
        return _Stream(super().connect_tcp(*address, *args, **kwargs), self, address, f"{host}:{port}")


class _Stream(httpcore2.NetworkStream):
    """A TCP stream that becomes TLS only with a trusted certificate."""

    def __init__(
        self, plain: httpcore2.NetworkStream, sockets: _Sockets, address: tuple[str, int], server: str
    ) -> None:
        self._plain = plain
        self._sockets = sockets
        self._address = address
        self._server = server
        self.read, self.write, self.close = plain.read, plain.write, plain.close  # type: ignore[method-assign]  # they are the plain stream's
        self.get_extra_info = plain.get_extra_info  # type: ignore[method-assign]  # as above

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            stream = self._plain.start_tls(ssl_context, server_hostname, timeout)
        except httpcore2.ConnectError as error:
            if isinstance(cause := error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
                raise tls.refused(cause, self._address, self._server) from None
            if isinstance(cause, ssl.SSLError) and not isinstance(cause, tls.BROKEN):
                raise tls.unfit(cause, self._server) from None
            raise
        if pin := self._sockets.pin:
            try:
                tls.check_pin(stream.get_extra_info("ssl_object").getpeercert(True), pin, self._server)
            except Untrusted:
                stream.close()
                raise
        if self._sockets.closed:
            stream.close()
            raise httpcore2.ConnectError("its client was closed meanwhile")
        return limits.Timed(stream)


class Body(httpx2.SyncByteStream):
    """A body whose errors are `translated` while it is read."""

    def __init__(self, inner: Any, translated: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._inner = inner
        self._translated = translated

    def __iter__(self) -> Iterator[bytes]:
        with self._translated():
            yield from self._inner

    def close(self) -> None:
        """Close the source of the body, if it can be closed."""
        if hasattr(self._inner, "close"):
            self._inner.close()


def interrupt(answer: httpx2.Response) -> None:
    """End the body of an answer that another thread reads, which closes the connection. A connection that is
    closed here would leave that thread with a number that the next connection gets.
    """
    if stream := answer.extensions.get("network_stream"):
        with contextlib.suppress(OSError):
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def as_httpx() -> Iterator[None]:
    """httpcore2's errors under httpx2's names; both libraries use the same names."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx2, type(error).__name__)(reason(error)) from error


def reason(error: BaseException) -> str:
    """Return why a connection failed, safe to print."""
    text = (
        (error.strerror if isinstance(error, OSError) else "")
        or ERRNO.sub("", str(error))
        or {"ConnectTimeout": "timed out", "ReadTimeout": "timed out"}.get(
            type(error).__name__, type(error).__name__
        )
    )
    return "".join(c for c in text if c.isprintable())[:300]
