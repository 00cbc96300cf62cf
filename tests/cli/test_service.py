"""What a watch tells systemd, as systemd's socket gets it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra.app.sight import Sight
from bfinfra.cli.service import Service
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.refs import Key

MOVED = Drifted(key=Key("bitfusion_server", "bf"), cause=Cause.DRIFT, field="power")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(str(tmp_path / "notify"))
        found.setblocking(False)
        yield found


def heard(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


def service(manager: socket.socket, **more: str) -> Service:
    found = Service.of({"NOTIFY_SOCKET": manager.getsockname(), **more})
    assert found
    return found


def test_systemd_hears_that_it_is_ready_how_it_is_and_that_it_ends(manager):
    found = service(manager)
    found.report(Sight(Report("poc", (), 3)))
    found.interrupted("vCenter ended\nthe session", 0)
    found.report(Sight(Report("poc", (MOVED,), 2, unreadable={"esx": "it is off"})))
    found.close()
    assert heard(manager) == [
        "READY=1\nSTATUS=no drift",
        "STATUS=changes are not followed: vCenter ended the session",
        "READY=1\nSTATUS=1 drifted; 1 can not be read",
        "STOPPING=1",
    ]


def test_signs_of_life_come_as_often_as_systemd_wants_them(manager):
    found = service(manager, WATCHDOG_USEC="300000000", WATCHDOG_PID=str(os.getpid()))
    for _ in range(5):
        found.turned(0)
    assert heard(manager) == ["WATCHDOG=1"]
    often = service(manager, WATCHDOG_USEC="4")
    for _ in range(3):
        often.beat()
    assert heard(manager) == ["WATCHDOG=1"] * 3


@pytest.mark.parametrize("given", [{}, {"WATCHDOG_USEC": "4", "WATCHDOG_PID": "1"}])
def test_there_are_none_where_nobody_waits_for_them(manager, given):
    service(manager, **given).turned(0)
    assert heard(manager) == []


def test_without_systemd_there_is_no_service_and_a_socket_that_is_gone_stops_nothing(tmp_path):
    assert Service.of({}) is None
    gone = Service.of({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    assert gone
    gone.close()
