from __future__ import annotations

from typing import Annotated

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from bfinfra.model.units import (
    MIB,
    TIME,
    Bytes,
    Limit,
    MachineMemory,
    Megahertz,
    MegahertzLimit,
    PciId,
    Seconds,
    _schema,
    _written,
    bytes_short,
    bytes_text,
    megahertz_text,
    quantity,
    seconds_text,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("128GiB", 128 << 30),
        ("1.5 TiB", 3 << 39),
        ("10Gi", 10 << 30),
        ("1GB", 10**9),
        (str(2**30), 2**30),
        ("0", 0),
        (7, 7),
    ],
)
def test_bytes(text, number):
    assert TypeAdapter(Bytes).validate_python(text) == number


@pytest.mark.parametrize("text", ["128 gigs", "GiB", "-1GiB", "1.0000001KiB", "", "1e3"])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(ValidationError):
        TypeAdapter(Bytes).validate_python(text)


@pytest.mark.parametrize(("text", "number"), [("128GiB", 128 << 30), ("4MiB", 4 << 20), (4 << 20, 4 << 20)])
def test_memory_of_a_machine(text, number):
    assert TypeAdapter(MachineMemory).validate_python(text) == number


@pytest.mark.parametrize(
    ("written", "message"), [(128, "128B"), ("130MiB", "130MiB"), ("128GB", "125000000KiB"), (0, "0B")]
)
def test_memory_that_vsphere_gives_no_machine_is_refused_before_anybody_is_asked(written, message):
    with pytest.raises(
        ValidationError, match=f"multiples of 4MiB, and {message} is none; write it with a binary unit"
    ):
        TypeAdapter(MachineMemory).validate_python(written)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Bytes, "512", "512 has no unit: write 512MiB or 512GiB"),
        (MachineMemory, "128", "128 has no unit: write 128MiB or 128GiB"),
        (Megahertz, "48", "48 has no unit: write 48MHz or 48GHz"),
        (MegahertzLimit, "5MHz", "vCenter limits it to 10MHz at least, and 5MHz is less"),
        (Limit, "100KiB", "vCenter counts it in MiB, and 100KiB is less than one"),
    ],
)
def test_a_forgotten_unit_is_reported(kind, text, message):
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(kind).validate_python(text)


def test_a_large_bare_number_is_in_the_smallest_unit():
    assert TypeAdapter(Megahertz).validate_python("48000") == 48_000
    assert TypeAdapter(Seconds).validate_python("5") == 5


def test_other_units():
    assert TypeAdapter(Megahertz).validate_python("48GHz") == 48_000
    assert TypeAdapter(Seconds).validate_python("10m") == 600
    assert (
        TypeAdapter(PciId).validate_python("0x10de") == TypeAdapter(PciId).validate_python("10DE") == 0x10DE
    )


@pytest.mark.parametrize(
    ("text", "kind", "write"),
    [
        ("384GiB", Bytes, bytes_text),
        ("48GHz", Megahertz, megahertz_text),
        ("2h", Seconds, seconds_text),
        ("1500MHz", Megahertz, megahertz_text),
        ("10m", Seconds, seconds_text),
        ("90s", Seconds, seconds_text),
        ("0s", Seconds, seconds_text),
    ],
)
def test_what_was_read_is_written_the_same(text, kind, write):
    adapter = TypeAdapter(kind)
    assert (
        write(adapter.validate_python(text))
        == adapter.dump_python(adapter.validate_python(text), mode="json")
        == text
    )


def test_for_people():
    assert [bytes_short(n) for n in (0, 1023, 1024, 1536)] == ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]
    assert [bytes_short(n) for n in (5 << 20, 1020 << 30, 3 << 40)] == ["5.0 MiB", "1020.0 GiB", "3.0 TiB"]


def test_a_limit_is_what_vcenter_keeps_of_it():
    assert TypeAdapter(Limit).validate_python("100GB") == 95367 * MIB
    assert TypeAdapter(Limit).dump_python(95367 * MIB, mode="json") == "95367MiB"
    assert TypeAdapter(Limit).validate_python("1MiB") == MIB
    assert TypeAdapter(MegahertzLimit).validate_python("10MHz") == 10


def test_what_is_no_pci_id_is_refused_with_one_that_is():
    with pytest.raises(ValidationError, match="expected a PCI id in hexadecimal, such as 0x10de"):
        TypeAdapter(PciId).validate_python("tesla")


LENGTH = {"mm": 1, "m": 1000, "": 1}


@pytest.fixture
def length() -> TypeAdapter[int]:
    """A quantity in mm, without a unit from 10 on."""
    return TypeAdapter(
        Annotated[
            int,
            quantity(LENGTH, "3m", 10, ("mm", "m")),
            _written(lambda number: f"{number}mm"),
            _schema("3m", LENGTH, 10),
        ]
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.25m", 1250), ("0.5 m", 500), ("3m", 3000), ("3mm", 3), ("10", 10), ("0", 0), (7, 7)],
)
def test_a_quantity_is_a_whole_number_of_its_smallest_unit(length, text, number):
    assert length.validate_python(text) == number == length.dump_python(number)
    assert length.dump_python(number, mode="json") == f"{number}mm"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3km", r"expected a quantity such as 3m \(units: mm, m\)"),
        (1.5, "expected a quantity such as 3m"),
        (True, "expected a quantity such as 3m"),
        ("1", "1 has no unit: write 1mm or 1m"),
        ("1.0005m", "1.0005m is not a whole number of the smallest unit"),
    ],
)
def test_what_is_no_quantity_is_refused_with_what_is_wrong(length, text, message):
    with pytest.raises(ValidationError, match=message):
        length.validate_python(text)


def test_where_any_number_has_a_meaning_none_lacks_a_unit():
    with pytest.raises(ValidationError, match=r"0\.5 is not a whole number of the smallest unit"):
        TypeAdapter(Annotated[int, quantity(TIME, "10m")]).validate_python("0.5")


def test_an_editor_underlines_what_is_no_quantity(length):
    schema = length.json_schema()
    fits = jsonschema.Draft202012Validator(schema).is_valid
    assert schema["examples"] == ["3m"]
    assert [each for each in ("1.25m", "3 mm", "12", 10, 0, "3km", "m", 9, 1, -1, 1.5) if fits(each)] == [
        "1.25m",
        "3 mm",
        "12",
        10,
        0,
    ]
