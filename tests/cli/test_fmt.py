"""fmt, as it is typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bfinfra.cli import main

UNTIDY, TIDY = "site:   poc   # ours\nvcenter: {server:   vc}\n", "site: poc  # ours\nvcenter: {server: vc}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(UNTIDY)
    return tmp_path


def test_it_writes_the_file_that_changes_and_names_it(capsys) -> None:
    Path("site.yaml").chmod(0o640)
    assert main(["fmt"]) == 0
    assert capsys.readouterr().out == "site.yaml\n"
    assert Path("site.yaml").read_text() == TIDY
    assert Path("site.yaml").stat().st_mode & 0o777 == 0o640
    assert main(["fmt"]) == 0
    assert capsys.readouterr() == ("", "")


def test_check_and_diff_write_nothing(capsys) -> None:
    assert main(["fmt", "--check"]) == 2
    assert main(["fmt", "--diff", "."]) == 0
    assert main(["fmt", "-check", "-diff", "--json"]) == 2
    out = capsys.readouterr().out
    assert "-vcenter: {server:   vc}\n+site: poc  # ours\n" in out
    assert json.loads(out[out.index("{\n") :])["changed"] == ["site.yaml"]
    assert Path("site.yaml").read_text() == UNTIDY


def test_standard_input_goes_to_standard_output(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UNTIDY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == TIDY


def test_no_file_is_written_where_one_is_wrong(capsys) -> None:
    Path("worse.yaml").write_text("a: [")
    assert main(["fmt", "."]) == 1
    assert "worse.yaml:2:1: error: this is not YAML" in capsys.readouterr().err
    assert Path("site.yaml").read_text() == UNTIDY


def test_a_link_stays_a_link(folder: Path) -> None:
    Path("link.yaml").symlink_to("site.yaml")
    assert main(["fmt", "link.yaml"]) == 0
    assert Path("link.yaml").is_symlink()
    assert Path("site.yaml").read_text() == TIDY
