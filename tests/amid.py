"""Something that happens amid a run: a middleware that waits for a request, by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from bfinfra.backends import writes

LOGINS = ("Login", "POST /api/session", "POST /rest/com/vmware/cis/session", "POST /wcp/login")


@dataclass
class Amid:
    """`word`: the request that it happens at, before that is sent or, with `after`, once it is answered. `happens`
    is called then; from then on `answer` may answer in a server's place, or raise.
    """

    word: str
    happens: Callable[[], None] = lambda: None
    answer: Callable[[str, httpx2.Request], httpx2.Response | None] = lambda *_: None
    after: bool = False
    begun: bool = False
    asked: list[str] = field(default_factory=list)
    """The requests since, by name."""

    def __call__(self, inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        return _Between(self, inner)

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            self.happens()

    def logins(self) -> list[str]:
        return [each for each in self.asked if each in LOGINS]


class _Between(httpx2.BaseTransport):
    def __init__(self, amid: Amid, inner: httpx2.BaseTransport) -> None:
        self.amid, self.inner = amid, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        name, amid = writes.name(request), self.amid
        action = f"{name}?{request.url.query.decode()}" if request.url.query else name
        if amid.begun:
            amid.asked.append(name)
            if (found := amid.answer(name, request)) is not None:
                return found
            return self.inner.handle_request(request)
        if amid.word not in action:
            return self.inner.handle_request(request)
        if amid.after:
            answer = self.inner.handle_request(request)
            answer.read()
            amid.begin()
            return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)
        amid.begin()
        amid.asked.append(name)
        return amid.answer(name, request) or self.inner.handle_request(request)

    def close(self) -> None:
        self.inner.close()
