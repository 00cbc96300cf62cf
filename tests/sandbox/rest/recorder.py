"""What bfinfra and the sandbox say to each other over REST while a site is applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import yaml
from kinds.lifecycle import EVERYTHING, LONG, QUICK, endings, made
from operations import Exchange, judged

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.sandbox import Running


class Recorder:
    """Middleware of the transport that keeps every exchange with vCenter's REST API."""

    def __init__(self) -> None:
        self.kept: list[Exchange] = []

    def __call__(self, inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        recorder = self

        class Transport(httpx2.BaseTransport):
            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                answer = inner.handle_request(request)
                if request.url.host != "vc.small.test" or not request.url.path.startswith("/api/"):
                    return answer
                body = b"".join(answer.stream)
                answer.close()  # gives its connection back
                recorder.keep(request, answer.status_code, body)
                return httpx2.Response(
                    answer.status_code, headers=answer.headers, content=body, extensions=answer.extensions
                )

            def close(self) -> None:
                inner.close()

        return Transport()

    def keep(self, request: httpx2.Request, status: int, body: bytes) -> None:
        query = dict(parse_qsl(request.url.query.decode()))
        sent = request.read()
        path = request.url.path.removeprefix("/api")
        self.kept.append(
            Exchange(
                request.method,
                path,
                query,
                json.loads(sent) if sent else None,
                status,
                json.loads(body) if body else None,
            )
        )

    def seen(self) -> set[str]:
        """The operations, by the SDK's names; fails where an exchange doesn't fit."""
        found = [judged(each) for each in self.kept]
        wrong = [each for _, wrong in found for each in wrong]
        assert not wrong, "\n".join(wrong)
        return {name for name, _ in found}


def run(site: dict[str, Any], folder: Path, sandbox: Running, recorder: Recorder, **how: Any) -> None:
    (folder / "site.yaml").write_text(yaml.safe_dump(site))
    run_context = bfinfra.RunContext(sandbox=sandbox, middleware=(recorder,), retry=QUICK)
    given = bfinfra.load(folder / "site.yaml", sandbox=sandbox)
    done = bfinfra.apply(
        given,
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK, deadline=LONG),
        context=run_context,
        **how,
    )
    assert made(done), endings(done)
