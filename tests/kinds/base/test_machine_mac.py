"""MAC addresses as a site writes them."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from bfinfra.kinds.vcenter.base.machine.mac import Mac

MAC = TypeAdapter(Mac)


@pytest.mark.parametrize("text", ["00:50:56:0a:bc:de", "00:50:56:0A:BC:DE", "00-50-56-0a-Bc-De"])
def test_one_address_is_one_text(text):
    assert MAC.validate_python(text) == "00:50:56:0a:bc:de"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00:50:56:0a:bc",
        "00:50:56:0a:bc:de:f0",
        "0:50:56:a:bc:de",
        "00:50-56:0a:bc:de",
        "005056.0abcde",
        "00:50:56:0a:bc:dg",
        "00:50:56:0a:bc:de\n",
        "01:00:5e:00:00:01",
        "ff:ff:ff:ff:ff:ff",
        "00:00:00:00:00:00",
    ],
)
def test_what_is_no_address_of_one_adapter_is_refused(text):
    with pytest.raises(ValidationError):
        MAC.validate_python(text)
