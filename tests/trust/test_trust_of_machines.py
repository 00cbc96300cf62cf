"""bfinfra trust shows the SSH host keys of machines, and says which the site pins; nobody logs in."""

from __future__ import annotations

import json
import subprocess
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


def other_key(folder: Path) -> tuple[str, str]:
    """Another key, as a line of known_hosts has it, and its fingerprint."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / "other")]
    subprocess.run(command, check=True)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", folder / "other.pub"], check=True, capture_output=True, text=True
    )
    return (folder / "other.pub").read_text().strip(), shown.stdout.split()[1]


@pytest.mark.parametrize("how", ["a fingerprint", "a known_hosts file", "a hashed one", "a file without it"])
def test_a_changed_key_is_named_with_both_fingerprints_and_the_place_of_the_trust(
    how: str, sandbox: Running, tmp_path: Path
) -> None:
    (now,) = shown(EXAMPLES["linux_host"], sandbox)
    text, (key, old) = EXAMPLES["linux_host"].read_text(), other_key(tmp_path)
    address = now.server.rpartition(":")[0]
    if how == "a fingerprint":
        text = text.replace("{known_hosts: ssh/known_hosts}", f"{{sha256: '{old}'}}")
    else:
        text = text.replace("ssh/known_hosts", "machines")
        (tmp_path / "machines").write_text(f"{address if 'without' not in how else '10.9.9.9'} {key}\n")
    if how == "a hashed one":
        subprocess.run(
            ["ssh-keygen", "-q", "-H", "-f", tmp_path / "machines"], check=True, capture_output=True
        )
        assert address not in (tmp_path / "machines").read_text()
    (site := tmp_path / "site.yaml").write_text(text)
    line = next(
        n for n, each in enumerate(text.splitlines(), 1) if "trust:" in each and "ca_file" not in each
    )
    found = bfinfra.plan(bfinfra.load(site, sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox))
    (why,) = {*found.unreadable.values()}
    assert f"{now.server}: the machine shows another host key than the pinned one" in why
    assert f"trust of gpu-01 ({site}:{line}:" in why
    assert f"has {old if 'without' not in how else f'no key for {address}'}" in why
    assert ("in machines" in why) is (how != "a fingerprint")
    assert f"the machine shows {now.keys[0][1]} ({now.keys[0][0]})" in why
    assert "only if so, write the new one there" in why
    assert "bfinfra-ssh-" not in why
