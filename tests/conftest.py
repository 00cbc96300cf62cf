"""Fixtures of the sandbox for every test, and of the real peers for those that need them."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from forks import Sandbox
from peers.found import NotUp, find

from bfinfra.model import redact
from bfinfra.sandbox import process

pytest_plugins = ["bfinfra.testing", "left_out", "peers.order", "recorded.plugin", "contract.plugin"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: looking for garbage among it takes half of a worker's start, and
    again at each full collection and at the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        importlib.import_module("hypothesis")  # it looks for referrers, and what is frozen shows none
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # a twentieth less processor time than with Python's own
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def forked_sandboxes() -> Iterator[None]:
    """Sandboxes start as forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "launch", Sandbox)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """This machine trusts no authority: no test depends on whom its machine trusts, and to read a hundred
    authorities takes 20 ms of processor, in each command anew.
    """
    folder = tmp_path_factory.mktemp("authorities")
    (folder / "none.pem").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(folder / "none.pem"))
        patch.setenv("SSL_CERT_DIR", str(folder))
        yield


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests in this process took for secrets, short words some of them, isn't hidden in this
    one.
    """
    monkeypatch.setattr(redact, "_heads", {})
    monkeypatch.setattr(redact, "_lasting", set())
    monkeypatch.setattr(redact, "_passing", {})


@pytest.fixture(scope="session")
def peers(request: pytest.FixtureRequest) -> Any:
    """The real peers, running; a test that asks for them is marked `peers`."""
    try:
        return find()
    except NotUp as error:
        pytest.fail(f"--peers: {error}", pytrace=False)
