"""Finds out which plans wait for an approval. An approval is the plan's digest."""

from __future__ import annotations

import enum
import hashlib
import json

from bfinfra.engine import guard
from bfinfra.engine.guard import Allow
from bfinfra.model.errors import Unsafe
from bfinfra.model.plan import Action, Plan, step_data
from bfinfra.model.redact import clean

DIGITS = 16  # hexadecimal digits of a digest


class Approval(enum.StrEnum):
    """`approval:` of a Site."""

    ALWAYS = "Always"
    DISRUPTIVE = "Disruptive"
    NEVER = "Never"


def digest(plan: Plan) -> str:
    """The same for the same steps on the same objects, on any machine and day. It covers what a deletion
    deletes too.
    """
    contents = {str(item.key): list(item.contents) for item in plan.pending if item.contents}
    steps = {
        str(item.key): {"action": str(item.action), "steps": [step_data(s) for s in item.steps]}
        for item in plan.pending
    }
    whole = json.dumps([plan.site, clean(steps), contents], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest()[:DIGITS]


def allowed(plan: Plan, rule: Approval, approved: str = "", *, expected: bool = False) -> Allow | None:
    """Return what the plan may do; None if it waits for approval. `expected`: it would undo drift that the
    site allows for a while, so somebody must decide.

    A plan with problems or unreadable resources never waits: the apply reports why it can't run.
    """
    if not plan.pending or plan.problems or plan.unreadable:
        return Allow()
    if approved == digest(plan):
        return _whole(plan)
    if rule is Approval.ALWAYS or expected:
        return None
    given = Allow(every_delete=True, every_disruption=True) if rule is Approval.NEVER else Allow()
    try:
        guard.check(plan, given)
    except Unsafe:
        return None
    return given


def _whole(plan: Plan) -> Allow:
    """Exactly what the plan would delete and disrupt."""
    goes = frozenset(item.key for item in plan.pending if item.action in (Action.DELETE, Action.REPLACE))
    return Allow(delete=goes, disrupt=frozenset(item.key for item in plan.pending))
