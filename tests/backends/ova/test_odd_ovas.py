"""Each odd OVA is read as what it is, or refused by file, line and element with a reason and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from odd_ovas import FIRST, ODD, SECOND, Odd, Parts, put
from pyVmomi import vim

from bfinfra.backends.ova import check, inspect, read, units, verify
from bfinfra.backends.ova.rules import Rules, rules
from bfinfra.model.errors import Refusal
from bfinfra.sandbox.soap import ovf_descriptor, ovf_hardware

ETHERNET = vim.vm.device.VirtualEthernetCard


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_each_is_taken_whole_or_refused_with_a_reason(odd: Odd, tmp_path: Path) -> None:
    path = odd.write(tmp_path)
    if not odd.refused:
        found = read(path)
        verify(found, lambda _: None)
        assert tuple(disk.capacity for disk in found.disks) == odd.sizes
        assert all(found.open(name).read(4) == b"KDMV" for name in found.files)
        assert inspect(found)["hardware"]["memory"] == 32 << 30
        return
    with pytest.raises(Refusal) as raised:
        verify(read(path), lambda _: None)
    problem = raised.value.problems[0]
    assert problem.what.startswith("odd.ova: ")
    assert odd.refused in str(raised.value)
    assert problem.next, "what to do is missing"


def test_its_disks_take_what_is_populated_or_the_files_where_that_is_more(tmp_path: Path) -> None:
    path = Odd("populated", put('ovf:populatedSize="', f'ovf:populatedSize="{20 << 30}" more="')).write(
        tmp_path
    )
    found = read(path)
    assert found.least == (20 << 30) + found.files[SECOND]


def test_a_refusal_of_an_element_names_its_line(tmp_path: Path) -> None:
    odd = next(each for each in ODD if each.name == "compression gzip")
    path = odd.write(tmp_path)
    with pytest.raises(Refusal) as raised:
        read(path)
    line = re.search(r"line (\d+) of its descriptor, File:", raised.value.problems[0].what)
    assert line
    text = path.read_bytes()[512:].decode(errors="replace").splitlines()
    assert FIRST in text[int(line[1]) - 1]


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("byte", 1),
        ("", 1),
        ("byte * 2^20", 1 << 20),
        ("byte*2^30", 1 << 30),
        ("byte * 2 ^ 30", 1 << 30),
        ("2^30 * byte", 1 << 30),
        ("byte * 1024 * 1024", 1 << 20),
        ("byte * 10^6", 10**6),
        ("kilobyte", 1000),
        ("kilobyte * 2^10", 1_024_000),
        ("kibibyte", 1024),
        ("mebibytes", 1 << 20),
        ("Bytes", 1),
        ("KiloBytes", 1 << 10),
        ("MegaBytes", 1 << 20),
        ("GigaBytes", 1 << 30),
        ("TeraBytes", 1 << 40),
        ("KB", 1 << 10),
        ("mb", 1 << 20),
        ("GB", 1 << 30),
        ("GiB", 1 << 30),
        ("furlongs", None),
        ("byte / 8", None),
        ("byte * byte", None),
        ("byte * 2^99", None),
        ("byte * 2^-3", None),
        ("byte * 0", None),
        ("9999999999999999999 * 10^99", None),
        ("*".join(["2^10"] * 5000), None),
    ],
)
def test_units_of_every_spelling(written: str, size: int | None) -> None:
    assert units.size(written) == size
    assert ovf_descriptor.units(written) == size, "the sandbox's vCenter reads them the same"


@pytest.mark.parametrize(
    ("kind", "qualifiers", "found"),
    [
        ("string", 'ValueMap{"a{1}","b,c"}', Rules(choices=("a{1}", "b,c"))),
        ("string", r'ValueMap{"say \"hi\"" , "x"} MaxLen(9)', Rules(most=9, choices=('say "hi"', "x"))),
        ("string", 'ValueMap{"MinLen(9)"}', Rules(choices=("MinLen(9)",))),
        ('string["]", "}"]', "", Rules(choices=("]", "}"))),
        ("string(1..64)", "", Rules(1, 64, 1, 64)),
        ("password(8..)", "", Rules(8, None, 8, None)),
        ("int(-5..5)", "", Rules(-5, 5, -5, 5)),
        ("uint16", "MinValue(1500), MaxValue(9000)", Rules(low=1500, high=9000)),
        ("string", "ValueMap{", Rules()),
    ],
)
def test_rules_of_a_property(kind: str, qualifiers: str, found: Rules) -> None:
    assert rules(kind, qualifiers) == found


def test_a_value_must_be_one_of_the_choices(tmp_path: Path) -> None:
    odd = next(each for each in ODD if each.name.startswith("choices"))
    mode = read(odd.write(tmp_path)).declared["mode"]
    assert mode.user_configurable
    assert not mode.required
    assert (check(mode, "a{1},b"), check(mode, "MinLen(9)")) == ("", "")
    assert check(mode, "b") == "expected one of a{1},b, MinLen(9)"


@pytest.mark.parametrize("odd", [each for each in ODD if not each.refused], ids=lambda odd: odd.name)
def test_the_sandbox_s_vcenter_makes_of_each_what_bfinfra_reads(odd: Odd, tmp_path: Path) -> None:
    """Two readers, written apart."""
    ours = read(odd.write(tmp_path))
    theirs = ovf_descriptor.parse(ours.descriptor)
    changes = ovf_hardware.device_changes(theirs, {name: name for name in theirs.networks}, thin=True)
    devices = [each.device for each in changes]
    assert [each.capacityInBytes for each in devices if hasattr(each, "capacityInBytes")] == [
        disk.capacity for disk in ours.disks
    ]
    adapters = [each.backing.deviceName for each in devices if isinstance(each, ETHERNET)]
    assert tuple(adapters) == ours.hardware.adapters
    assert list(theirs.networks) == [each.name for each in ours.networks]
    assert ovf_hardware.quantity(theirs, ovf_hardware.MEMORY, 0) << 20 == ours.hardware.memory
    assert ovf_hardware.family(theirs.family) == ours.hardware.version
    assert [each.id for each in theirs.properties] == [each.key for each in ours.properties]


REFUSED_BY_VCENTER = (
    "capacity in furlongs",
    "family virtualbox-2.2",
    "required sound card",
    "adapter of virtio",
    "network that isn't listed",
    "disk of an unknown id",
    "OVF 2",
)
"""What vCenter itself refuses. The rest breaks later: at the upload, or in a client that joins and unpacks."""


@pytest.mark.parametrize("name", REFUSED_BY_VCENTER)
def test_the_sandbox_s_vcenter_refuses_what_vcenter_does(name: str) -> None:
    parts = Parts()
    next(each for each in ODD if each.name == name).change(parts)
    with pytest.raises(vim.fault.OvfFault):
        found = ovf_descriptor.parse(parts.text)
        ovf_hardware.family(found.family)
        ovf_hardware.device_changes(found, {name: name for name in found.networks}, thin=True)
