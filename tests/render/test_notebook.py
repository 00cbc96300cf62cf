"""A plan and a report show themselves in a notebook."""

from __future__ import annotations

from render_samples import HOST, OLD
from test_drift_text import REPORT
from test_page import Read

from bfinfra.render.html_page import identifier


def test_a_plan_shows_its_changes(plan):
    found = Read(plan._repr_html_())
    ids = {attrs.get("id") for attrs in found.all("tr")}
    assert {identifier(HOST), identifier(OLD)} <= ids
    assert "2 to update" in found.words


def test_a_report_shows_what_differs():
    found = Read(REPORT._repr_html_())
    assert len(found.all("tr")) == 1 + len(REPORT.found)


def test_what_can_not_be_read_is_shown(broken):
    assert "cluster-01 does not answer" in Read(broken._repr_html_()).words
