"""demo writes a whole site and applies it to the embedded sandbox; script/package runs it where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfinfra.cli import demo, execute, main

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_the_site_its_world_and_what_they_name_then_applies_it(monkeypatch, capsys):
    applied = []
    monkeypatch.setattr(execute, "execute", lambda args, **_: applied.append(args) or 0)
    assert main(["demo"]) == 0
    for name in demo.FILES:
        assert (Path("bfinfra-demo") / name).read_bytes() == (SPECS / name).read_bytes()
    assert (applied[0].sites, applied[0].sandbox, applied[0].yes) == (
        ["bfinfra-demo/singapore-poc.yaml"],
        True,
        True,
    )
    assert "bfinfra drift bfinfra-demo/singapore-poc.yaml --sandbox" in capsys.readouterr().out


def test_a_file_that_is_there_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(execute, "execute", lambda args, **_: 3)
    Path("mine").mkdir()
    Path("mine/singapore-poc.yaml").write_text("site: mine\n")
    assert main(["demo", "mine"]) == 3
    assert Path("mine/singapore-poc.yaml").read_text() == "site: mine\n"


def test_a_folder_that_takes_no_file_is_reported(capsys):
    Path("file").write_text("")
    assert main(["demo", "file"]) == 1
    error = capsys.readouterr().err
    assert "the file can't be written" in error
    assert "next: name another folder" in error
