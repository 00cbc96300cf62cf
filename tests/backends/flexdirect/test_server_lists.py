"""FlexDirect's lists of servers: what is written is read back, and what leads nowhere is named."""

from __future__ import annotations

import pytest

from bfinfra.backends.flexdirect.servers import parse, render


def test_what_is_written_is_read_back():
    servers = ("10.5.0.1:56001", "10.5.0.2:56002", "gpu-3.example:56001")
    assert render(servers, "v100") == "### v100\n10.5.0.1\n10.5.0.2:56002\ngpu-3.example\n"
    assert parse(render(servers, "v100")) == servers


@pytest.mark.parametrize("line", ["172.31.44", "10.5.0.1:0", "10.5.0.1:port", "10.5.0.1 10.5.0.2"])
def test_a_line_that_leads_nowhere_is_named(line):
    """The guide's own samples are cut short: 172.31.44."""
    with pytest.raises(ValueError, match="line 2"):
        parse(f"10.5.0.9\n{line}\n")
