"""MAC addresses that a site gives to network adapters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from bfinfra.model import conflict
from bfinfra.model.conflict import Taken

FORM = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}")


def _mac(value: str) -> str:
    found = value.lower()
    if not FORM.fullmatch(found):
        raise ValueError("expected a MAC address such as 00:50:56:12:34:56")
    if int(found[:2], 16) & 1 or not found.strip("0:-"):
        raise ValueError(f"{value} is no address of one adapter")
    return found.replace("-", ":")


Mac = Annotated[str, AfterValidator(_mac)]
"""A unicast EUI-48 address, in lower case with colons."""


def taken(field: str, mac: str | None) -> Iterator[Taken]:
    """The address of an adapter, which no other may have."""
    if mac:
        yield conflict.thing(field, f"the MAC address {mac}", "MAC")
