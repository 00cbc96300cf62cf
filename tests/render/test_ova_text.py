"""What `bfinfra ova inspect` prints."""

from __future__ import annotations

from bfinfra.render.ova import text


def prop(key: str, **fields: object) -> dict[str, object]:
    return {
        "key": key,
        "type": "string",
        "required": False,
        "user_configurable": True,
        "password": False,
        "default": "",
        "label": "",
        "description": "",
        "category": "",
        "qualifiers": "",
        **fields,
    }


FOUND = {
    "file": "downloads/bf.ova",
    "size": 3 * 2**30,
    "product": {"name": "Bitfusion", "vendor": "VMware", "version": "3", "full_version": "3.0.0-11"},
    "hardware": {
        "cpus": 8,
        "memory": 32 * 2**30,
        "version": "vmx-17",
        "firmware": "efi",
        "adapters": ["Network 1"],
    },
    "properties": [
        prop("guestinfo.hostname", required=True, label="Hostname\x1b[2J", qualifiers="MinLen(1)"),
        prop("customer", password=True, required=True),
        prop("mtu", type="int", default="1500", description="MTU"),
        prop("build", user_configurable=False),
    ],
    "networks": [
        {"name": "Network 1", "description": "Management"},
        {"name": "Network 2", "description": ""},
    ],
    "disks": [{"id": "vmdisk1", "href": "disk-0.vmdk", "size": 2**30, "capacity": 50 * 2**30, "format": ""}],
    "deployment_options": [{"id": "small", "label": "Small", "default": True}],
    "licences": ["words"],
    "members": [],
    "manifest": {"state": "present", "algorithms": ["SHA256"], "files": 3},
    "signature": {
        "algorithm": "SHA256",
        "subject": "CN=Builder\x1b[2J",
        "issuer": "CN=Builder",
        "not_before": "2020-01-01T00:00:00+00:00",
        "not_after": "2021-01-01T00:00:00+00:00",
        "sha256": "ab" * 32,
        "own": True,
        "expired": True,
    },
}


def test_a_newcomer_sees_what_to_fill_in():
    assert (
        text(FOUND)
        == """\
VMware Bitfusion 3.0.0-11
  downloads/bf.ova, 3.0 GiB, has a manifest; --verify checks it (SHA256)
  its manifest is signed (SHA256) by CN=Builder\\x1b[2J, certified by itself, until 2021-01-01, which is over
  compare the certificate's SHA-256: abababababababababababababababababababababababababababababababab
  8 CPUs, 32GiB memory, vmx-17, efi
  1 licence to accept

properties
  guestinfo.hostname: string MinLen(1), required
      Hostname\\x1b[2J
  customer: string, required, secret
  mtu: int, default "1500"
      MTU
  build: string, can't be set

networks
  Network 1: Management
  Network 2

disks
  vmdisk1: 50.0 GiB, 1.0 GiB in disk-0.vmdk

deployment options
  small: Small (default)"""
    )


def test_a_bare_one_has_only_what_there_is():
    bare = {
        **FOUND,
        "product": dict.fromkeys(FOUND["product"], ""),
        "properties": [],
        "networks": [],
        "disks": [],
        "deployment_options": [],
        "licences": [],
    }
    assert text(bare).startswith("a product without a name\n")
    assert "properties" not in text(bare)
