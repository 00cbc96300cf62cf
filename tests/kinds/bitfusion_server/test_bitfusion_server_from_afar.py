"""A server from an OVA behind an address, on the sandbox."""

from __future__ import annotations

import hashlib
import json
import re
import ssl

import pytest
from file_server import Files
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan

from bfinfra.sandbox.factories.ova import make_ova

pytestmark = pytest.mark.thorough


@pytest.fixture
def site(files: Files, tmp_path):
    make_ova(tmp_path / "a.ova")
    files.data = (tmp_path / "a.ova").read_bytes()
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(files.pem)).hexdigest()
    ova = f"{{url: {files.url}, trust: {{sha256: {pin}}}, sha256: {hashlib.sha256(files.data).hexdigest()}}}"
    (tmp_path / "site.yaml").write_text(
        EXAMPLES["bitfusion_server"].read_text().replace("{file: server.ova}", ova)
    )
    return tmp_path / "site.yaml"


def test_a_plan_downloads_little_an_apply_all_of_it_twice_and_a_second_one_nothing_more(
    site, sandbox, files: Files
):
    assert plan(site, sandbox).pending
    assert files.sent < 300_000
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    disks = 2 * (1 << 20)
    assert 2 * disks < files.sent < 2 * len(files.data) + 900_000
    files.asked.clear()
    assert set(endings(apply(site, sandbox)).values()) == {"kept"}
    assert files.sent < 300_000


def test_one_that_is_not_the_file_that_is_wanted_is_refused_and_nothing_is_left(site, sandbox, files: Files):
    site.write_text(site.read_text().replace(hashlib.sha256(files.data).hexdigest(), "0" * 64))
    outcome = apply(site, sandbox)
    assert "it is not the expected file" in endings(outcome)["bitfusion_server/bf-01"]
    assert "ImportVApp" not in str(sandbox.tally())


@pytest.mark.parametrize(
    ("ova", "message"),
    [
        ({"url": "https://me:secret@127.0.0.1/a.ova"}, "an account in an address"),
        ({"url": "http://127.0.0.1/a.ova"}, "http doesn't prove which server answers"),
        ({"url": "ftp://127.0.0.1/a.ova"}, "expected an address such as"),
        ({"url": "https://127.0.0.1/a.ova", "file": "server.ova"}, "give either file or url"),
        ({}, "give either file or url"),
    ],
)
def test_an_address_that_would_be_unsafe_is_an_error_in_the_file(site, sandbox, ova, message):
    site.write_text(EXAMPLES["bitfusion_server"].read_text().replace("{file: server.ova}", json.dumps(ova)))
    with pytest.raises(Exception, match=message) as raised:
        plan(site, sandbox)
    assert "me:secret" not in str(raised.value).partition("|")[0]


def test_a_server_whose_authority_is_not_there_yet_is_not_asked_and_its_appliance_is_awaited(
    site, sandbox, files: Files
):
    site.write_text(
        re.sub(r"trust: \{sha256: \w+\}", "trust: {ca_file: mirror.pem}", site.read_text(), count=1)
    )
    (held,) = plan(site, sandbox).held
    assert held.held.what == "bitfusion_server/bf-01: mirror.pem is not there yet"
    assert str(held.held.where).startswith(f"{site}:")
    assert "ova.url" in held.held.next
    assert files.sent == 0
    (site.parent / "mirror.pem").write_text(files.pem)
    assert plan(site, sandbox).held == ()
    assert files.sent > 0
