"""What the doctor says of Bitfusion servers: their appliances, and the room for these."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import replace

from file_server import Files
from kinds.checking import BAD, GOOD, checks_on, diagnosed, messages
from kinds.lifecycle import EXAMPLES

from bfinfra.kinds.vcenter.bitfusion_server.checks import space
from bfinfra.sandbox.factories.ova import make_ova


def test_a_datastore_that_is_out_of_reach(sandbox, monkeypatch):
    with checks_on(sandbox, "bitfusion_server") as context:
        inventory = context.entered().inventory.read()
        for stores, words in (
            ((), "reaches no datastore"),
            (tuple(replace(each, accessible=False) for each in inventory.datastores), "is not accessible"),
        ):
            monkeypatch.setattr(
                context.vcenter.inventory, "read", lambda stores=stores: replace(inventory, datastores=stores)
            )
            found = list(space(context))
            assert found
            assert all(each.health is BAD and words in each.what and each.next for each in found)


def test_an_appliance_behind_an_address_is_read_there(sandbox, files: Files, tmp_path):
    make_ova(tmp_path / "a.ova")
    files.data = (tmp_path / "a.ova").read_bytes()
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(files.pem)).hexdigest()
    (tmp_path / "site.yaml").write_text(
        EXAMPLES["bitfusion_server"]
        .read_text()
        .replace("{file: server.ova}", f"{{url: {files.url}, trust: {{sha256: {pin}}}}}")
    )
    found = diagnosed(tmp_path / "site.yaml", sandbox)
    assert "can be read" in messages(found, GOOD)["local.packages"]
    assert "vcenter.space" in messages(found, GOOD)
    assert files.sent < len(files.data), "its headers alone"
