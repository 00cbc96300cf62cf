"""Values, sizes and times for people; and times for programs."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping

from bfinfra.model.compare import Unknown
from bfinfra.model.plan import plain
from bfinfra.model.secret import Secret
from bfinfra.model.units import BINARY, bytes_text
from bfinfra.render.safe import safe

BARE = re.compile(r"[\w./:@+%$*~-]+(?: [\w./:@+%$*~-]+)*")
WORDS = ("true", "false", "null", "(none)")
SIZE = re.compile(r"(\d+)([KMGTP]iB|B)")
LONGEST = 160  # characters of a value in a line for people


def shown(value: object, unit: str = "") -> str:
    """A value as a site writes it. `unit` of a number: bytes, MHz or seconds. Secrets show as their
    reference.
    """
    text = _shown(value, unit)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _shown(value: object, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return {None: "(none)", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return quantity(value, unit)
    if isinstance(value, str):
        return (
            _text(value)
            if unit != "bytes" or not (size := SIZE.fullmatch(value))
            else size_text(int(size[1]) * BINARY[size[2]])
        )
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{safe(k)}: {_shown(v, unit)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shown(v, unit) for v in value) + "]"
    return safe(value) if isinstance(value, (Unknown, Secret)) else _shown(plain(value), unit)


def _text(value: str) -> str:
    bare = BARE.fullmatch(value) and value not in WORDS and not value.replace(".", "", 1).isdigit()
    return safe(value if bare else json.dumps(value, ensure_ascii=False))


def quantity(number: float, unit: str = "") -> str:
    """`137438953472` bytes → `128GiB`, `48000` MHz → `48GHz`, `600` seconds → `10m`; as it is without a
    unit.
    """
    if unit == "bytes" and isinstance(number, int):
        return size_text(number)
    if unit == "MHz":
        return f"{number // 1000}GHz" if number and number % 1000 == 0 else f"{number}MHz"
    if unit == "seconds":
        return next(
            (
                f"{number // size}{letter}"
                for letter, size in (("h", 3600), ("m", 60))
                if number and number % size == 0
            ),
            f"{number}s",
        )
    return str(number)


def size_text(number: int) -> str:
    """`137438953472` → `128GiB`, `16000000000` → `16GB`: the shortest exact text, binary if both are equally
    short.
    """
    decimal = next(
        (
            f"{number // BINARY[unit]}{unit}"
            for unit in ("TB", "GB", "MB", "KB")
            if number and number % BINARY[unit] == 0
        ),
        "",
    )
    binary = bytes_text(number)
    return decimal if decimal and _digits(decimal) < _digits(binary) else binary


def _digits(size: str) -> int:
    return sum(letter.isdigit() for letter in size)


def duration(seconds: float) -> str:
    """For people: `0.4s`, `12s`, `4m 10s`, `1h 3m`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    parts = [f"{hours}h", f"{left}m"] if hours else [f"{minutes}m", f"{rest}s"]
    return " ".join(part for part in parts if part[0] != "0")


def count(number: int, noun: str) -> str:
    """`1 write`, `2 writes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def utc(at: float) -> str:
    """Seconds since the epoch → ISO 8601 in UTC with milliseconds: `2026-02-03T04:05:06.789Z`."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def minute(at: float) -> str:
    """For people: `2026-02-03 04:05 UTC`."""
    return utc(at)[:16].replace("T", " ") + " UTC"


def clock(at: float) -> str:
    """`04:05:06`, in UTC."""
    return utc(at)[11:19]
