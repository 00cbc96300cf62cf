"""The HTTP of SOAP: a request, the session's cookie, an answer.

`httpx2.Client` does the same with a cookie jar, redirects and authentication: with it an apply of 100 servers
takes 1.1 times the processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import httpx2


class SoapTransport:
    """To one vCenter. `address`: https://host:port; `agent`: the user agent. Safe to use from several
    threads. Its methods raise RemoteError.
    """

    def __init__(
        self, transport: httpx2.BaseTransport, address: str, agent: str, timeout: httpx2.Timeout
    ) -> None:
        self._transport = transport
        self._address = httpx2.URL(address)
        self._urls: dict[str, httpx2.URL] = {}
        self._headers = {"Accept": "*/*", "User-Agent": agent}
        self._extensions = {"timeout": timeout.as_dict()}
        self.cookies: dict[str, str] = {}
        """Name → value of each cookie that the server set last: its session."""

    def get(self, path: str) -> httpx2.Response:
        """The whole answer to a GET."""
        with self._answer("GET", path, None, {}) as answer:
            answer.read()
        return answer

    def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        """The whole answer to a POST."""
        with self._answer("POST", path, content, headers) as answer:
            answer.read()
        return answer

    def stream(
        self, path: str, content: bytes, headers: Mapping[str, str]
    ) -> AbstractContextManager[httpx2.Response]:
        """The answer to a POST, whose body the block reads."""
        return self._answer("POST", path, content, headers)

    @contextmanager
    def _answer(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[httpx2.Response]:
        url = self._urls.get(path) or self._urls.setdefault(path, self._address.join(path))
        session = "; ".join(f"{name}={value}" for name, value in self.cookies.copy().items())
        request = httpx2.Request(
            method,
            url,
            content=content,
            headers={**self._headers, **headers, **({"Cookie": session} if session else {})},
            extensions=self._extensions,
        )
        answer = self._transport.handle_request(request)
        answer.request = request
        try:
            for cookie in answer.headers.get_list("set-cookie"):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name.strip()] = value.strip()
            yield answer
        finally:
            answer.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()
