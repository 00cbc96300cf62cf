"""When imports begin that are asked for at once, on a clock that only sleeping moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bfinfra.backends.vcenter import ovf
from bfinfra.backends.vcenter.ovf import APART, Imports
from bfinfra.model.errors import Denied


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(ovf, "time", made)
    return made


@pytest.fixture
def begin(clock):
    began: list[float] = []

    def read(_: object) -> None:
        began.append(clock.now)
        raise Denied("no")

    imports = Imports(SimpleNamespace(read=read), None, None, lambda: "")

    def begin() -> list[float]:
        with pytest.raises(Denied):
            imports.run(SimpleNamespace(), lambda *_: None)
        return began

    return begin


def test_what_is_asked_for_at_once_begins_one_after_the_other(begin):
    begin()
    begin()
    assert begin() == pytest.approx([0, APART, 2 * APART])


def test_nobody_waits_where_the_one_before_began_a_while_ago(begin, clock):
    begin()
    clock.now += 1
    assert begin() == pytest.approx([0, 1])
