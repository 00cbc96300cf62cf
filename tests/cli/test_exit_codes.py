"""The table of exit codes in docs/reference/command-line.md, run: one code for each outcome, whatever the command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.engine import retry
from bfinfra.engine.retry import RetryPolicy
from bfinfra.sandbox import SMALL_WORLD, Running

PAGE = Path(__file__).parents[2] / "docs/reference/command-line.md"
SITE: dict[str, Any] = {
    "site": "codes",
    "vcenter": {
        "server": "vc.small.test",
        "username": "admin@small.test",
        "password": {"env": "VCENTER_PASSWORD"},
        "trust": {"ca_file": "ca.pem"},
    },
    "distributed_switch": {"own": {"hosts": {"esx1.small.test": ["vmnic1"]}}},
}
OTHER = {"sha256": ":".join(["AB"] * 32)}


def table() -> dict[tuple[str, str], int]:
    """(what happens, command) → its code."""
    lines = PAGE.read_text().partition("| what happens |")[2].partition("\n\n")[0].splitlines()
    commands, _, *rows = ([each.strip() for each in line.strip("| ").split("|")] for line in lines)
    cells = {(row[0], each): code for row in rows for each, code in zip(commands, row[1:], strict=False)}
    return {cell: int(code) for cell, code in cells.items() if code}


CODES = table()
HAPPENS: dict[str, tuple[dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "nothing is to be done": ({}, ()),
    "something is to be done": ({}, ()),
    "a server refuses the login": ({}, ({"method": "Login", "do": {"soap": "InvalidLogin"}},)),
    "a server refuses to show something": (
        {},
        ({"method": "RetrievePropertiesEx", "do": {"soap": "NoPermission"}},),
    ),
    "a server shows another certificate": ({"trust": OTHER}, ()),
    "a server can't be reached": ({"server": "nowhere.small.test"}, ()),
    "a server can't serve requests now": ({}, ({"method": "RetrievePropertiesEx", "do": {"status": 503}},)),
    "a server refuses a change": ({}, ({"method": "*_Task", "do": {"soap": "NoPermission"}},)),
    "something takes longer than it was given": ({}, ()),
}
"""What the site says of its server, and what the server does."""
SAYS = {
    "a server refuses the login": "vCenter refused the login",
    "a server refuses to show something": "the privilege System.Read is missing",
    "a server shows another certificate": "the server's certificate is not the pinned one",
    "a server can't be reached": "the sandbox has no such address",
    "a server can't serve requests now": "503; run this again when the server is less busy",
    "a server refuses a change": "the privilege System.Read is missing",
    "something takes longer than it was given": "is not over",
}


@pytest.fixture
def run(
    sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, Any], str], int]:
    """Runs a command on a site and returns its code; it waits for nothing."""
    monkeypatch.setattr(worlds, "embedded", lambda *_, **__: sandbox)
    monkeypatch.setattr(retry, "RetryPolicy", functools.partial(RetryPolicy, lasts=0, attempts=1))
    monkeypatch.chdir(tmp_path)

    def command(site: dict[str, Any], words: str) -> int:
        Path("site.yaml").write_text(yaml.safe_dump(site))
        more = ["--yes", "--deadline", "1s"] if words in ("apply", "destroy") else []
        return main([*words.split(), *more, "--world", str(SMALL_WORLD), "site.yaml"])

    return command


def test_every_row_of_the_page_is_run() -> None:
    assert {what for what, _ in CODES} == {*HAPPENS}


@pytest.mark.parametrize(("what", "command"), CODES)
def test_each_outcome_has_its_one_code(
    what: str,
    command: str,
    run: Callable[[dict[str, Any], str], int],
    sandbox: Running,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own, faults = HAPPENS[what]
    if (what == "nothing is to be done") != (command == "destroy"):
        assert run(SITE, "apply") == 0
    sandbox.pace(1e6 if what == "something takes longer than it was given" else 0)
    sandbox.faults(*({"api": "vcenter", **each} for each in faults))
    capsys.readouterr()
    code = run({**SITE, "vcenter": {**SITE["vcenter"], **own}}, command)
    sandbox.pace(0)
    said = "".join(capsys.readouterr())
    assert code == CODES[what, command], said
    assert SAYS.get(what, "") in said
