"""Quantities as a site writes them, and as numbers in one unit each: bytes, MHz, seconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

BINARY = {
    "": 1,
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
HERTZ = {"MHz": 1, "GHz": 1000, "": 1}
TIME = {"s": 1, "m": 60, "h": 3600, "": 1}
MIB, GIGAHERTZ = BINARY["MiB"], HERTZ["GHz"]
"""Below these numbers, a quantity without a unit is an error."""
LEAST_SHARE = 10  # MHz; the least limit that vCenter takes for a namespace
GRAIN = 4 << 20  # bytes; vSphere's machine memory is a multiple of it


def quantity(units: dict[str, int], example: str, least: int = 0, usual: tuple[str, ...] = ()) -> Any:
    """A validator that turns `<number><unit>` into the smallest unit, exactly. `example` is for its error.

    A number without a unit is in the smallest one if it is 0 or at least `least`; else the error suggests a
    `usual` unit.
    """
    pattern = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")

    def read(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = pattern.fullmatch(value) if isinstance(value, str) else None
        if not match or match[2] not in units:
            raise ValueError(
                f"expected a quantity such as {example} (units: {', '.join(u for u in units if u)})"
            )
        whole, _, part = match[1].partition(".")
        if not match[2] and 0 < float(match[1]) < least:
            raise ValueError(f"{value} has no unit: write {' or '.join(value + unit for unit in usual)}")
        scaled, rest = divmod(int(whole + part) * units[match[2]], 10 ** len(part))
        if rest:
            raise ValueError(f"{value} is not a whole number of the smallest unit")
        return scaled

    return BeforeValidator(read)


def _schema(example: str, units: dict[str, int], least: int) -> WithJsonSchema:
    pattern = rf"^\d+(\.\d+)?\s*({'|'.join(u for u in units if u)})?$"
    bare: list[dict[str, Any]] = [
        {"type": "integer", "minimum": least},
        *([{"type": "integer", "minimum": 0, "maximum": 0}] if least else []),
    ]
    return WithJsonSchema({"anyOf": [{"type": "string", "pattern": pattern}, *bare], "examples": [example]})


def _written(text: Callable[[int], str]) -> PlainSerializer:
    return PlainSerializer(text, when_used="json")


def bytes_text(number: int) -> str:
    """`137438953472` → `128GiB`: the largest unit that keeps it whole."""
    for unit in ("PiB", "TiB", "GiB", "MiB", "KiB"):
        if number and number % BINARY[unit] == 0:
            return f"{number // BINARY[unit]}{unit}"
    return f"{number}B"


def megahertz_text(number: int) -> str:
    """`48000` → `48GHz`."""
    return f"{number // 1000}GHz" if number and number % 1000 == 0 else f"{number}MHz"


def seconds_text(number: int) -> str:
    """`600` → `10m`."""
    return next(
        (f"{number // TIME[unit]}{unit}" for unit in ("h", "m") if number and number % TIME[unit] == 0),
        f"{number}s",
    )


def _granted(memory: int) -> int:
    if not memory or memory % GRAIN:
        raise ValueError(
            f"vSphere gives a machine memory in multiples of {bytes_text(GRAIN)}, and "
            f"{bytes_text(memory)} is none; write it with a binary unit, such as 128GiB"
        )
    return memory


def _limit(number: int) -> int:
    """Whole MiB, as vCenter keeps it: what it drops would be a difference for ever."""
    if number < MIB:
        raise ValueError(
            f"vCenter counts it in MiB, and {bytes_text(number)} is less than one; write such as 128GiB"
        )
    return number - number % MIB


def _granted_share(number: int) -> int:
    if number < LEAST_SHARE:
        raise ValueError(
            f"vCenter limits it to {megahertz_text(LEAST_SHARE)} at least, "
            f"and {megahertz_text(number)} is less"
        )
    return number


Bytes = Annotated[
    int,
    quantity(BINARY, "128GiB", MIB, ("MiB", "GiB")),
    Field(ge=0),
    _written(bytes_text),
    _schema("128GiB", BINARY, MIB),
]
Limit = Annotated[Bytes, AfterValidator(_limit)]
MachineMemory = Annotated[Bytes, AfterValidator(_granted)]
Megahertz = Annotated[
    int,
    quantity(HERTZ, "48GHz", GIGAHERTZ, ("MHz", "GHz")),
    Field(ge=0),
    _written(megahertz_text),
    _schema("48GHz", HERTZ, GIGAHERTZ),
]
MegahertzLimit = Annotated[Megahertz, AfterValidator(_granted_share)]
Seconds = Annotated[int, quantity(TIME, "10m"), Field(ge=0), _written(seconds_text), _schema("10m", TIME, 0)]


def bytes_short(number: float) -> str:
    """A size for people: `1.4 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def _hex(value: object) -> Any:
    if isinstance(value, str):
        try:
            return int(value, 16)
        except ValueError:
            raise ValueError("expected a PCI id in hexadecimal, such as 0x10de") from None
    return value


PciId = Annotated[
    int,
    BeforeValidator(_hex),
    Field(ge=0, le=0xFFFF),
    _written(lambda n: f"0x{n:04x}"),
    WithJsonSchema({"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{1,4}$", "examples": ["0x10de"]}),
]
