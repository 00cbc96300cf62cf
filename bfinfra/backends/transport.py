"""The only way to the network: every byte to or from a server goes through `Transport`. It decides the
address, the trust, and whether writes are allowed.
"""

from __future__ import annotations

import contextlib
import functools
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

import httpx2

from bfinfra.backends import limits, tls, writes
from bfinfra.backends.network import Body, Network, reason
from bfinfra.backends.outages import Outages
from bfinfra.model.errors import (
    Denied,
    Malformed,
    OutOfFiles,
    Rejected,
    RemoteError,
    Unanswered,
    Unreachable,
    Untrusted,
)
from bfinfra.model.records import dataclass
from bfinfra.model.redact import hide
from bfinfra.model.trust import Trust

Route = Callable[[str, int], tuple[str, int] | None]
Middleware = Callable[[httpx2.BaseTransport], httpx2.BaseTransport]
TIMEOUT = httpx2.Timeout(60, connect=10)  # seconds
LOOPBACK = ("127.0.0.1", "::1", "localhost")
ENVELOPE = frozenset(
    {b"content-encoding", b"content-length", b"transfer-encoding"}
)  # of a body that is already uncompressed
REDIRECTS = (301, 302, 303, 307, 308)


@dataclass
class Tally:
    """Counts requests: all, those that write, and by name. Safe to use from several threads."""

    requests: int = 0
    writes: int = 0
    names: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, name: str, *, writing: bool) -> None:
        """Count one more request."""
        with self._lock:
            self.requests += 1
            self.writes += writing
            self.names[name] += 1


class Transport:
    """Makes clients. `route` changes host and port (to the sandbox's loopback listeners); names and
    certificates stay.

    `middleware` wraps the network, the first innermost: a cassette, faults. `read_only` refuses every write
    before it leaves the process. `timeout`: seconds to wait for an answer, if shorter than usual.

    `outages` holds requests back to a server that is away. Its `check` is called before each request but a
    logout.
    """

    def __init__(
        self,
        *,
        read_only: bool = False,
        route: Route | None = None,
        middleware: Sequence[Middleware] = (),
        timeout: float | None = None,
        outages: Outages | None = None,
    ) -> None:
        self.read_only = read_only
        self.timeout = httpx2.Timeout(timeout, connect=timeout / 2) if timeout else TIMEOUT
        self.tally = Tally()
        self.outages = outages or Outages()
        """The servers, host:port, that are away."""
        self._route = route
        self._middleware = tuple(middleware)
        self._open: list[httpx2.BaseTransport] = []
        self._contexts: dict[tuple[str | None, ...], ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def client(
        self,
        base_url: str,
        trust: Trust,
        *,
        extra_pem: str = "",
        headers: dict[str, str] | None = None,
        public: bool = False,
    ) -> httpx2.Client:
        """A client of one server: https only, no redirects, no settings from the environment. Raises
        Untrusted.

        `public`: for public files that a digest verifies: http too, and the caller handles redirects; never
        for requests with an account.
        """
        return httpx2.Client(
            base_url=base_url,
            transport=self.transport(base_url, trust, extra_pem=extra_pem, public=public),
            timeout=self.timeout,
            trust_env=False,
            follow_redirects=False,
            headers=headers,
        )

    def transport(
        self,
        base_url: str,
        trust: Trust,
        *,
        extra_pem: str = "",
        identity: tuple[str, str] | None = None,
        public: bool = False,
    ) -> httpx2.BaseTransport:
        """The transport of `client`, for libraries that bring their own client; raises bfinfra's errors.
        `identity`: a client certificate and key (PEM).
        """
        url = httpx2.URL(base_url)
        server = f"{url.host}:{url.port or 443}"
        if url.scheme != "https" and not (public and url.scheme == "http"):
            raise Untrusted(f"{base_url} is not https", server=server, next="write an https address")
        context = self._context(trust, extra_pem, server, identity)
        where = functools.partial(self.where, public=public)
        inner: httpx2.BaseTransport = Network(context, trust.sha256 or "", where)
        for layer in self._middleware:
            inner = layer(inner)
        outer = _Outermost(inner, self, server, public=public)
        with self._lock:
            self._open.append(outer)
        return outer

    def _context(
        self, trust: Trust, extra_pem: str, server: str, identity: tuple[str, str] | None
    ) -> ssl.SSLContext:
        """One context for all servers with the same trust, as reading the system's store takes 20 ms; a
        separate one with a client certificate.
        """
        if identity:
            own = tls.context(trust, extra_pem, server)
            tls.identify(own, *identity, server)
            return own
        alike = (*_version(trust), trust.sha256, trust.ca_pem, extra_pem)
        with self._lock:
            if alike not in self._contexts:
                self._contexts[alike] = tls.context(trust, extra_pem, server)
            return self._contexts[alike]

    @property
    def routed(self) -> bool:
        """True if addresses are routed to the sandbox. Then nothing may be done to real servers."""
        return self._route is not None

    def where(self, host: str, port: int, *, public: bool = False) -> tuple[str, int]:
        """The address to connect to for `host` and `port`. Raises Unreachable if the route has none: nothing
        bypasses it but downloads (`public`) from this machine.
        """
        if self._route is None:
            return host, port
        if found := self._route(host, port):
            return found
        if public and host in LOOPBACK:
            return host, port
        raise Unreachable(
            "the sandbox has no such address",
            server=f"{host}:{port}",
            next="it exists while its machine or cluster runs",
            met=False,
        )

    def connect(self, host: str, port: int, timeout: float) -> None:
        """A bare TCP connect within `timeout` seconds. Raises Unreachable."""
        try:
            socket.create_connection(self.where(host, port), timeout).close()
        except OSError as error:
            raise _unreachable(f"{host}:{port}", error, met=False) from None

    def forget(self, closed: httpx2.BaseTransport) -> None:
        """A client was closed."""
        with self._lock, contextlib.suppress(ValueError):
            self._open.remove(closed)

    def close(self) -> None:
        """Close every connection of every client."""
        with self._lock:
            opened, self._open = self._open, []
        for transport in opened:
            transport.close()


def _version(trust: Trust) -> tuple[str | None, str]:
    """The file with the authorities, and when it was written: it is read again after that."""
    if trust.ca_file is None:
        return None, ""
    with contextlib.suppress(OSError):
        return str(trust.ca_file.path), str(trust.ca_file.path.stat().st_mtime_ns)
    return str(trust.ca_file.path), ""


class _Outermost(httpx2.BaseTransport):
    """Counts, refuses writes in a run that only reads, and turns transport errors into bfinfra's."""

    def __init__(
        self, inner: httpx2.BaseTransport, transport: Transport, server: str, *, public: bool = False
    ) -> None:
        self._inner = inner
        self._transport = transport
        self._server = server
        self._public = public

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        writing = writes.writes(request)
        name = writes.name(request)
        if writing and self._transport.read_only:
            raise WriteRefused(name, self._server)
        if not writes.ends_session(name):
            self._transport.outages.check()
        self._transport.tally.count(name, writing=writing)

        def translated() -> contextlib.AbstractContextManager[None]:
            met = self._transport.outages.met(self._server)
            return _as_remote(self._server, name, writing=writing, met=met)

        if (
            request.url.scheme != "https"
        ):  # an absolute address may have another scheme than the client's base
            raise Untrusted(
                f"{name} would go over {request.url.scheme}",
                server=self._server,
                next="this is a defect of bfinfra; please report it",
            )
        _hide_entry(request.headers)
        if request.headers.get("accept-encoding") != "identity":
            request.headers["accept-encoding"] = limits.ACCEPTED
        response = self._answer(request, name, translated, writing=writing)
        for cookie in response.headers.get_list("set-cookie"):
            hide(cookie.partition(";")[0].partition("=")[2].strip('"'), passing=True)
        if (
            not self._public
            and response.status_code in REDIRECTS
            and (place := response.headers.get("location"))
        ):
            response.close()
            raise Redirected(name, place, self._server)
        if response.status_code == httpx2.codes.PROXY_AUTHENTICATION_REQUIRED:
            response.close()
            raise Denied(
                f"{name} is answered by a proxy",
                server=self._server,
                why="it wants a login of its own (407)",
                next="let this machine reach the server without a proxy: bfinfra uses none",
            )
        headers = [(key, value) for key, value in response.headers.raw if key.lower() not in ENVELOPE]
        stream = Body(limits.Bounded(response, limits.of(request, name)), translated)
        return httpx2.Response(
            response.status_code, headers=headers, stream=stream, extensions=response.extensions
        )

    def _answer(
        self,
        request: httpx2.Request,
        name: str,
        translated: Callable[[], contextlib.AbstractContextManager[None]],
        *,
        writing: bool,
    ) -> httpx2.Response:
        """A logout waits for no server, and isn't remembered."""
        if writes.ends_session(name):
            with translated():
                return self._inner.handle_request(request)
        outages = self._transport.outages
        # a vCenter that opens no more sessions serves all other requests of the same path
        path = f"/{name}" if name == "Login" else request.url.path
        with outages.asking(self._server, path, writing=writing) as answered:
            with translated():
                response = self._inner.handle_request(request)
            answered(response)
        return response

    def close(self) -> None:
        self._transport.forget(self)
        self._inner.close()


def _hide_entry(headers: httpx2.Headers) -> None:
    """By what a request enters, at each request: what is in use stays hidden."""
    hide(headers.get("authorization", "").partition(" ")[2], passing=True)
    for cookie in headers.get("cookie", "").split(";"):
        hide(cookie.partition("=")[2].strip().strip('"'), passing=True)


class WriteRefused(RemoteError):
    """A write in a run that only reads; it was not sent."""

    def __init__(self, name: str, server: str) -> None:
        super().__init__(
            f"refused to send {name}",
            server=server,
            why="this run only reads",
            next="this is a defect of bfinfra; please report it",
        )


class TooLarge(Malformed):
    """An answer exceeds its limit. One to a question about less may not."""


class Redirected(Rejected):
    """The server redirects its client. It is not followed: the request, with its credentials, is not for the
    other server.
    """

    def __init__(self, name: str, place: str, server: str) -> None:
        url = (
            re.sub(r"^((?:[\w+.-]+:)?//)?[^/?#@]*@", r"\1", place).partition("?")[0].partition("#")[0]
        )  # no account, no query: either may contain a secret
        self.place = "".join(c for c in url if c.isprintable())[:200]
        super().__init__(
            f"{name} is answered by a redirect",
            server=server,
            why=f"it leads to {self.place}",
            next="nothing was sent there; if that is the right server, put its address into the site",
        )


@contextlib.contextmanager
def _as_remote(server: str, name: str, *, writing: bool, met: bool) -> Iterator[None]:
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        if full := OutOfFiles.behind(error):
            raise full from None
        raise _unreachable(server, error, met=met) from None
    except limits.Overstepped as error:
        made = Unanswered if writing else TooLarge if error.large else Malformed
        raise made(
            f"the answer to {name} {error.what}", server=server, why=error.why, next=error.next
        ) from None
    except httpx2.TransportError as error:
        if writing:
            raise Unanswered(f"no whole answer to {name}", server=server, why=reason(error)) from None
        raise Unreachable(f"no whole answer to {name}", server=server, why=reason(error), met=met) from None


def _unreachable(server: str, error: BaseException, *, met: bool) -> Unreachable:
    return Unreachable(
        "no connection",
        server=server,
        why=reason(error),
        next="check the address, that the server runs, and that no firewall blocks it",
        met=met,
    )
