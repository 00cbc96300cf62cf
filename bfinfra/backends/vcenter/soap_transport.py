"""The wire of SOAP: httpx2's requests and answers on the seam's transport. The cookie jar and redirects of
httpx2's client would cost half as much as a request itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import httpx2

NOTHING: Mapping[str, str] = {}


class SoapTransport:
    """One vCenter's. `cookies`: name → value of what it set last, its session. Safe to use from several
    threads. Raises RemoteError.
    """

    def __init__(
        self, transport: httpx2.BaseTransport, address: str, agent: str, timeout: httpx2.Timeout
    ) -> None:
        self._transport = transport
        self._address = httpx2.URL(address)
        self._urls: dict[str, httpx2.URL] = {}
        self._always = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "User-Agent": agent}
        self._timeout = timeout.as_dict()
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> httpx2.Response:
        """A whole answer."""
        with self._answer("GET", path, b"", NOTHING) as answer:
            answer.read()
        return answer

    def post(self, path: str, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        """A whole answer."""
        with self.stream(path, content, headers) as answer:
            answer.read()
        return answer

    def stream(
        self, path: str, content: bytes, headers: Mapping[str, str]
    ) -> AbstractContextManager[httpx2.Response]:
        """The answer to a POST, to be read as it comes."""
        return self._answer("POST", path, content, headers)

    @contextmanager
    def _answer(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> Iterator[httpx2.Response]:
        url = self._urls.get(path) or self._urls.setdefault(path, self._address.join(path))
        session = (
            {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.copy().items())}
            if self.cookies
            else NOTHING
        )
        request = httpx2.Request(
            method,
            url,
            content=content or None,
            headers={**self._always, **session, **headers},
            extensions={"timeout": self._timeout},
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
