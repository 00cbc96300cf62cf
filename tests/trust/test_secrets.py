"""No secret is anywhere but where it belongs; and the scan that says so finds one wherever it is put."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import os
import quopri
import re
import sys
import tarfile
import urllib.parse
import zipfile

import pytest
from trust import campaign, plants
from trust.scan import Scanner

NONE = re.compile(rb"(?!)")


def test_a_site_full_of_secrets_leaves_none_in_outputs_journal_plan_temporary_files_and_process_lists(
    tmp_path,
):
    ran = campaign.run(tmp_path, campaign.share)
    planted = [name for name in ran.secrets if not name.startswith("handed out")]
    assert len(planted) >= 30
    assert len(ran.secrets) > len(planted)
    assert [run["code"] for run in ran.runs if run["argv"][0] == "apply" and not run["echo"]] == [0]
    assert list(ran.leaks()) == []
    assert any("[secret]" in run["out"] + run["err"] for run in ran.runs if run["echo"])
    for name in ("vault", "keyring"):  # programs that were asked for a secret got no other one
        environ = (tmp_path / "seen" / f"{name}.environ").read_text()
        assert "PATH=" in environ
        assert not re.search("REGISTRY_|PEPPER|APPLIANCE|GOVC_PASSWORD|KUBECTL_VSPHERE", environ)
    state = tmp_path / "state/bfinfra/planted"
    for path in [*state.rglob("*"), state, tmp_path / "cwd/plan.json", tmp_path / "cwd/out.kubeconfig"]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.thorough
def test_without_hiding_the_scan_finds_what_a_server_quotes(tmp_path):
    found = "\n".join(campaign.run(tmp_path, campaign.mishaps, unhidden=True).leaks())
    for name in ("appliance password", *(f"registry password with {sort}" for sort in plants.SORTS)):
        assert name in found
    assert re.search("state/bfinfra/planted/sandbox-[0-9a-f]+/journal.jsonl", found)


VALUE = plants.sort("double quotes") + " <&> ü+/="
WRITTEN = {
    "plain": VALUE.encode(),
    "json": json.dumps({"a": VALUE}).encode(),
    "xml": html.escape(VALUE).encode(),
    "url": urllib.parse.quote(VALUE, safe="").encode(),
    "form": urllib.parse.urlencode({"a": VALUE}).encode(),
    "hex": VALUE.encode().hex().encode(),
    "HEX": VALUE.encode().hex().upper().encode(),
    "utf-16": VALUE.encode("utf-16"),
    "quoted-printable": quopri.encodestring(VALUE.encode()),
    **{f"base64 after {n}": base64.b64encode(b"x" * n + VALUE.encode() + b"yz") for n in range(3)},
    "base64 in lines": base64.encodebytes(b"x" * 50 + VALUE.encode()),
    "base64 for urls": base64.urlsafe_b64encode(VALUE.encode()),
    "base64 twice": base64.b64encode(b"a" + base64.b64encode(b"b" + VALUE.encode())),
    "base64 of json": base64.b64encode(json.dumps({"auth": VALUE}).encode()),
    "python": repr(VALUE).encode(),
    "cut": VALUE[:14].encode(),
    "end": VALUE[-14:].encode(),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_the_scan_finds_a_secret_in_each_form(written):
    assert Scanner({"it": VALUE}).find(b"before " + written + b" after")
    assert Scanner({"another": plants.marker("another")}).find(written) == []


def test_the_scan_finds_a_line_of_a_private_key():
    key = plants._key()
    assert Scanner({"key": key}).find(key.splitlines()[7].encode())


def test_the_scan_finds_a_secret_in_names_links_and_packed_files(tmp_path):
    secret = plants.marker("packed").encode()
    (tmp_path / secret.decode()).touch()
    (tmp_path / "link").symlink_to(f"/nowhere/{secret.decode()}")
    (tmp_path / "a.gz").write_bytes(gzip.compress(secret))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x", secret)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("x")
        member.size = len(secret)
        archive.addfile(member, io.BytesIO(secret))
    assert len(Scanner({"it": secret.decode()}).folder(tmp_path, NONE)) == 5


@pytest.mark.parametrize(
    "channel",
    ["out", "err", "state/journal.jsonl", "tmp/left", "cwd/plan.json", "seen/vault.environ", "home/.x"],
)
def test_the_scan_looks_into_each_channel(channel, tmp_path):
    for name in ("state", "tmp", "cwd", "seen", "home"):
        (tmp_path / name).mkdir()
    secret, run = plants.marker("channel"), {"argv": ["plan"], "echo": "", "out": "", "err": ""}
    if channel in run:
        run[channel] = secret
    else:
        (tmp_path / channel).write_text(secret)
    assert list(campaign.Ran(tmp_path, [run], {"it": secret}, tmp_path / "sandbox", {}).leaks())


def test_the_scan_sees_the_command_lines_and_environments_of_children(tmp_path):
    secret = plants.marker("child")
    child = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(.3)', "
        f"'{secret[:10]}' + '{secret[10:]}'], env={{'X': '{secret[:9]}' + '{secret[9:]}'}})"
    )
    output = campaign._watched([sys.executable, "-c", child], tmp_path, dict(os.environ))
    found = list(campaign.Ran(tmp_path, [], {"it": secret}, tmp_path, output).leaks())
    assert any("cmdline" in each for each in found)
    assert any("environ" in each for each in found)


def test_a_child_that_has_not_started_its_own_program_yet_got_no_secret(tmp_path):
    secret = plants.marker("forked")
    forked = "import os, time\nif os.fork(): os.wait()\nelse: time.sleep(.3)"
    output = campaign._watched([sys.executable, "-c", forked], tmp_path, {**os.environ, "X": secret})
    assert len(output) >= 2
    assert list(campaign.Ran(tmp_path, [], {"it": secret}, tmp_path, output).leaks()) == []
