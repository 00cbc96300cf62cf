"""What came of a play."""

from __future__ import annotations

import pytest

from bfinfra.backends.ansible import Played
from bfinfra.model.errors import Busy, Rejected

LOCK = (
    "install: E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"
)


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        ({"one": LOCK}, Busy),
        ({"one": LOCK, "two": "no space left on device"}, Rejected),
        ({"one": "E: Unable to locate package x"}, Rejected),
    ],
)
def test_a_machine_where_somebody_else_installs_is_asked_again(
    failed: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error, match="bitfusion_client failed on one"):
        Played("bitfusion_client", {"one": 0, "two": 0}, failed).check()
