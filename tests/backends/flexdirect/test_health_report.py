"""FlexDirect's health reports, in the very words of its guide: statuses torn from their checks, wrapped
lines, and totals that must fit.
"""

from __future__ import annotations

import pytest

from bfinfra.backends.flexdirect.report import parse
from bfinfra.model.health import Status

ON_A_SERVER = """\
Health report for server: 192.168.1.132:56001
[PASS
               Check flexdirect install
               Check library dependency
[PASS
[PASS
               Check Network Errors/Drops: found no errors or packet drops
               Check external connectivity to Bitfusion license server. Ignore for
[PASS
               on-premise installations.
               Check GPU API mismatch
[PASS ]
               Check CUDA version >= 7050: Current version: 9020
[PASS
[PASS
               Check GPU Xid errors
[PASS
               Check GPU driver version >= 367.0: Current version: 396.37
[PASS
               Check temperature <= 100.00: current temp: 38.00
[PASS
               Check ECC errors
[PASS
               Check shadow memory 96563MB and total gpu mem 24331MB
               Check mem ops
[PASS
[PASS
               Check ulimit -n >= 4096: 4096
[MARGINAL]
               Check MTU Size: 10000Mbps interface vetha9c24cf MTU 1500 < 4K:
                performance hit
[MARGINAL]
               Check multinode support: RDMA not supported
[SKIPPED ]
               Cannot perform PCIe diagnosis without root access. Run the binary with
               sudo to get diagnosis
PASS: 13
MARGINAL: 2
FATAL: 0
SKIPPED: 1
"""

FROM_A_POD = """\
Health report for server: 192.168.1.132:56001
                Check flexdirect install
[PASS
                Check library dependency
[PASS
                Check Network Errors/Drops: found no errors or packet drops
                Check external connectivity to Bitfusion license server. Ignore for
[PASS
                on-premise installations.
[PASS
                Check GPU API mismatch
[PASS
                Check CUDA version >= 7050: Current version: 9020
[PASS
                Check GPU Xid errors
                Check GPU driver version \\geq 367.0: Current version: 396.37 Check temperature \\leq 100.00: current temp: 38.00
[PASS
[PASS
                Check ECC errors
[PASS
                Check shadow memory 96563MB and total gpu mem 24331MB
[PASS
                Check mem ops
[PASS
                Check ulimit -n >= 4096: 4096
[MARGINAL]
                Check MTU Size: 10000Mbps interface vetha9c24cf MTU 1500 < 4K:
                performance hit
[MARGINAL]
                Check multinode support: RDMA not supported
[SKIPPED ]
                Cannot perform PCIe diagnosis without root access. Run the binary with
                sudo to get diagnosis
PASS: 13
MARGINAL: 2
FATAL: 0
SKIPPED: 1
Health report for localhost
               Check flexdirect install
[PASS
                Check library dependency
               Check Network Errors/Drops: found no errors or packet drops
               Check external connectivity to Bitfusion license server. Ignore for
                on-premise installations.
[PASS ]
                Check GPU API mismatch
                Check CUDA version >= 7050: Current version: 9020
[PASS
[PASS
                Check GPU Xid errors
[PASS
                Check GPU driver version >= 367.0: Current version: 396.37
                Check temperature <= 100.00: current temp: 38.00
[PASS
[PASS
                Check ECC errors
[PASS
                Check shadow memory 96563MB and total gpu mem 24331MB
[PASS
                Check mem ops
[PASS
                Check ulimit -n >= 4096: 4096
[MARGINAL]
                Check MTU Size: 10000Mbps interface vetha9c24cf MTU 1500 < 4K:
                performance hit
[MARGINAL]
                Check multinode support: RDMA not supported
[SKIPPED ]
                Cannot perform PCIe diagnosis without root access. Run the binary with
                sudo to get diagnosis
PASS: 13
MARGINAL: 2
FATAL: 0
All cuda versions are the same
"""

WHOLE = """\
$ flexdirect health
Health report for server: 10.5.0.1:56001
[PASS    ]     Check flexdirect install
[MARGINAL]     Check MTU Size: 10000Mbps interface eth0 MTU 1500 < 4K:
                performance hit
[FATAL   ]     Check temperature <= 100.00: current temp: 104.00
PASS: 1
MARGINAL: 1
FATAL: 1
SKIPPED: 0
Health report for localhost
[PASS    ]     Check flexdirect install
PASS: 1
MARGINAL: 0
FATAL: 0
SKIPPED: 0
All cuda versions are the same
"""


def test_the_guides_report_of_a_server_is_read_check_by_check():
    (report,) = parse(ON_A_SERVER).reports
    assert (report.server, len(report.checks), report.objections, report.worst) == (
        "192.168.1.132:56001",
        16,
        (),
        Status.MARGINAL,
    )
    assert report.totals == {Status.PASS: 13, Status.MARGINAL: 2, Status.FATAL: 0, Status.SKIPPED: 1}
    texts = {check.text: check.status for check in report.checks}
    assert (
        texts["Check MTU Size: 10000Mbps interface vetha9c24cf MTU 1500 < 4K: performance hit"]
        is Status.MARGINAL
    )
    assert (
        texts["Check external connectivity to Bitfusion license server. Ignore for on-premise installations."]
        is Status.PASS
    )
    assert (
        texts["Cannot perform PCIe diagnosis without root access. Run the binary with sudo to get diagnosis"]
        is Status.SKIPPED
    )


def test_the_guides_report_from_a_pod_lost_statuses_in_print_and_is_not_taken_for_a_good_one():
    health = parse(FROM_A_POD)
    assert [report.server for report in health.reports] == ["192.168.1.132:56001", ""]
    assert health.notes == ("All cuda versions are the same",)
    assert "13 PASS are announced, 11 are listed" in health.reports[0].objections
    assert health.worst is Status.UNCLEAR


def test_a_report_in_one_piece_is_read_with_its_wrapped_lines_and_the_worst_counts():
    health = parse(WHOLE)
    server, localhost = health.reports
    assert [check.text for check in server.checks][
        1
    ] == "Check MTU Size: 10000Mbps interface eth0 MTU 1500 < 4K: performance hit"
    assert (server.worst, localhost.worst, health.worst, health.notes) == (
        Status.FATAL,
        Status.PASS,
        Status.FATAL,
        ("All cuda versions are the same",),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (WHOLE.replace("FATAL: 1", "FATAL: 0"), "0 FATAL are announced, 1 are listed"),
        (WHOLE.partition("PASS: 1")[0], "it has no totals"),
    ],
)
def test_totals_that_do_not_fit_are_reported(text, why):
    assert why in parse(text).reports[0].objections
    assert parse(text).worst is Status.UNCLEAR


@pytest.mark.parametrize("text", ["", "sh: flexdirect: not found\n", "[PASS] Check nothing\n"])
def test_what_is_no_report_is_unclear(text):
    assert parse(text).worst is Status.UNCLEAR
