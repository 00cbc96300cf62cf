"""Every command that asks says what is wrong with the site's files before it misses somebody to ask, and asks no
server before that.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bfinfra.cli import shells
from bfinfra.cli.main import main
from bfinfra.cli.parser import build

ASKING = [
    found.path
    for found in shells.commands(build())
    if any("--yes" in option.flags for option in found.options)
]
MORE = {("adopt",): ["vm_class/a"]}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    monkeypatch.setattr("bfinfra.app.apply.apply", lambda *_, **__: pytest.fail("a server was asked"))
    (tmp_path / "site.yaml").write_text("site: poc\n")
    return tmp_path / "site.yaml"


def said(path: tuple[str, ...], site: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*path, str(site), *MORE.get(path, [])]) == 1
    return capsys.readouterr().err


def test_they_are_found() -> None:
    assert {("apply",), ("destroy",), ("adopt",), ("token", "rotate")} <= {*ASKING}


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_what_is_wrong_with_the_file_comes_first(path, site, capsys):
    err = said(path, site.with_name("sitee.yaml"), capsys)
    assert "site.yaml" in err.replace("sitee.yaml", "")
    assert "confirmation" not in err
    site.write_text("site: poc\nvm_clas: {}\n")
    err = said(path, site, capsys)
    assert "vm_clas" in err
    assert "confirmation" not in err


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_then_somebody_is_missed_before_a_server_is_asked(path, site, capsys):
    assert f"{path[-1]} needs a confirmation" in said(path, site, capsys)
