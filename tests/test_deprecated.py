"""Old names of the library: they work, with a warning that gives the new name."""

from __future__ import annotations

from dataclasses import replace

import pytest

import bfinfra
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Report

ONCE = RetryPolicy(attempts=1)


@pytest.mark.parametrize("kind", [bfinfra.RunContext, bfinfra.Options])
def test_the_old_name_of_the_retry_policy_is_taken_and_read(kind):
    with pytest.warns(DeprecationWarning, match="patience is called retry now"):
        made = kind(patience=ONCE)
    assert made.retry is ONCE
    with pytest.warns(DeprecationWarning, match="patience is called retry now"):
        assert made.patience is ONCE
    with pytest.warns(DeprecationWarning, match="patience is called retry now"):
        assert replace(kind(), patience=ONCE).retry is ONCE


def test_the_old_name_of_the_existing_objects_of_a_report_is_read():
    report = Report("s", (), 0, existing=("host_option/a",))
    with pytest.warns(DeprecationWarning, match=r"Report\.standing is called existing now"):
        assert report.standing == ("host_option/a",)
