"""bfinfra trust shows the SSH host keys of machines, and says which the site pins; nobody logs in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES

import bfinfra
from bfinfra.app import trust
from bfinfra.render import host_keys
from bfinfra.sandbox import Running


def shown(path: Path, sandbox: Running) -> list[Any]:
    return trust.host_keys(bfinfra.load(path, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    text = (
        EXAMPLES["linux_host"]
        .read_text()
        .replace(
            "{known_hosts: ssh/known_hosts}", "{sha256: SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}"
        )
    )
    (tmp_path / "site.yaml").write_text(text)
    return tmp_path / "site.yaml"


def test_a_key_of_the_known_hosts_file_is_trusted(sandbox: Running) -> None:
    (found,) = shown(EXAMPLES["linux_host"], sandbox)
    assert (found.what, found.objection) == ("linux_host/gpu-01", "")
    assert found.keys[0][0] == "ssh-ed25519"
    assert sandbox.tally()["total"] == 0


def test_another_key_is_not_and_the_line_that_would_trust_it_is_shown_and_works(
    sandbox: Running, pinned: Path
) -> None:
    (found,) = shown(pinned, sandbox)
    assert found.objection == "the machine shows another host key than the pinned one"
    line = host_keys.text([found]).splitlines()[-1].strip()
    pinned.write_text(
        pinned.read_text().replace(
            "trust: {sha256: SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}", line
        )
    )
    assert shown(pinned, sandbox)[0].objection == ""
    assert json.dumps(host_keys.data([found]))
    assert (
        bfinfra.plan(
            bfinfra.load(pinned, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox)
        ).unreadable
        == {}
    )
