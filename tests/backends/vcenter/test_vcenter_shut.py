"""A server that is no vCenter, or lets nobody in: one sentence, after few requests."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

import bfinfra
from bfinfra.engine.retry import RetryPolicy

SITE = """
site: poc
vcenter: {server: vc.test, username: u@vsphere.local, password: {env: SHUT_PASSWORD}}
gpu_host: {esx-01.test: {passthrough: [{vendor: 0x10de, device: 0x1eb8}]}}
supervisor_namespace: {team: {cluster: compute}}
"""
PAGE = "<!DOCTYPE html><html><head><title>Internal\n Server &amp; Error</title></head><body>" + "x" * 5000


class Answering(httpx2.BaseTransport):
    """Answers everything alike."""

    def __init__(self, status: int, body: str) -> None:
        self.status, self.body, self.asked = status, body, 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        return httpx2.Response(self.status, headers={"content-type": "text/html"}, text=self.body)


def never(_: float) -> None:
    raise AssertionError("it waits")


@pytest.mark.parametrize(
    ("status", "body", "what"),
    [
        (
            500,
            PAGE,
            (
                "no vCenter answers GET /sdk/vimServiceVersions.xml; it sends a web page: Internal Server & "
                "Error; 500"
            ),
        ),
        (401, "", "vCenter refused the login of u@vsphere.local"),
    ],
)
def test_who_lets_nobody_in_is_asked_once(
    status, body, what, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHUT_PASSWORD", "hunter2-long")
    (tmp_path / "site.yaml").write_text(SITE)
    server = Answering(status, body)
    found = bfinfra.plan(
        bfinfra.load(tmp_path / "site.yaml"),
        context=bfinfra.RunContext(middleware=(lambda _: server,), retry=RetryPolicy(sleep=never)),
    )
    why = set(found.unreadable.values())  # of each of the two APIs
    assert len(why) <= 2
    assert any(what in each for each in why)
    assert max(map(len, why)) < 400
    assert server.asked <= 4
