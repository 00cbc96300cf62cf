"""A plan and a drift report in a notebook: a sentence and a table of HTML, without a style."""

from __future__ import annotations

from bfinfra.model.drift import Report
from bfinfra.model.plan import Plan
from bfinfra.render import drift, html_page, html_text, page, plan_page, text


def plan(found: Plan) -> str:
    """Return the plan as HTML."""
    rows = plan_page.rows(found)
    table = html_page.table("Changes", "What apply would do", plan_page.PLANNED, rows) if rows else []
    return "\n".join(
        [
            f"<p>{html_text.text(f'{found.site}: {text.counts(found)}')}</p>",
            *table,
            *html_page.unreadable(found.unreadable),
            *html_page.problems("Problems", found.problems),
        ]
    )


def report(found: Report) -> str:
    """Return the drift report as HTML."""
    rows = page.rows(found)
    table = html_page.table("Findings", "What differs, and who changed it", page.HEADS, rows)
    sentence = f"<p>{html_text.text(f'{found.site}: {drift.total(found)}')}</p>"
    return "\n".join([sentence, *(table if rows else []), *html_page.unreadable(found.unreadable)])
