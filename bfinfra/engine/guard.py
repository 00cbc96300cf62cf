"""Checks a plan before its first write: problems, unreadable resources, and what the caller did not allow."""

from __future__ import annotations

from dataclasses import field

from bfinfra.model.errors import BfinfraError, Problem, Unsafe
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption
from bfinfra.model.unreadable import by_cause


@dataclass(frozen=True)
class Allow:
    """Permissions of an apply beyond creating and updating without disruption.

    `every_delete`, `every_disruption`: all of them; `delete`, `disrupt`: these addresses. Deleting objects of
    others with their container always requires the address in `delete`.
    """

    every_delete: bool = False
    every_disruption: bool = False
    delete: frozenset[Key] = field(default_factory=frozenset)
    disrupt: frozenset[Key] = field(default_factory=frozenset)


def check(plan: Plan, allow: Allow) -> None:
    """Raises BfinfraError for a plan with problems or unreadable resources, Unsafe for one that does more
    than allowed.
    """
    blind = _blind(plan)
    if plan.problems or blind:
        raise BfinfraError(*plan.problems, *blind)
    if found := objections(plan, allow):
        raise Unsafe(*found)


def objections(plan: Plan, allow: Allow) -> list[Problem]:
    """One problem for each change that is not allowed."""
    return [problem for item in plan.pending for problem in _objections(item, allow)]


def _blind(plan: Plan) -> list[Problem]:
    """One problem for each cause, however many resources it hides."""
    return [
        Problem(
            f"{', '.join(each.named)} can't be read",
            why=each.why,
            next="correct that and run again; nothing was written",
        )
        for each in by_cause(plan.unreadable)
    ]


def _objections(item: Item, allow: Allow) -> list[Problem]:
    found = []
    goes = item.action in (Action.DELETE, Action.REPLACE)
    if goes and item.contents and item.key not in allow.delete:
        found.append(
            Problem(
                f"{item.key} contains objects that are not this site's: {', '.join(item.contents)}",
                why=f"to {item.action} it would delete them too",
                next=f"move them, or allow it with --allow-delete {item.key}",
            )
        )
    elif goes and not (allow.every_delete or item.key in allow.delete):
        why = "; ".join(s.title() for s in item.steps if s.disruption is Disruption.REPLACE)
        found.append(
            Problem(
                f"the plan would {item.action} {item.key}",
                why=why,
                next=f"allow it with --allow-delete {item.key}, or --allow-delete all",
            )
        )
    elif (
        not goes
        and (destroyed := [s.title() for s in item.steps if s.destructive])
        and not (allow.every_delete or item.key in allow.delete)
    ):
        found.append(
            Problem(
                f"the plan would destroy a part of {item.key}",
                why="; ".join(destroyed),
                next=f"allow it with --allow-delete {item.key}, or --allow-delete all",
            )
        )
    harsh = [
        s
        for s in item.steps
        if s.disruption in (Disruption.RESTART, Disruption.REBOOT, Disruption.POWER_CYCLE)
        and not s.preapproved
    ]
    if (
        harsh
        and item.action is not Action.DELETE
        and not (allow.every_disruption or item.key in allow.disrupt)
    ):
        why = "; ".join(dict.fromkeys(s.why for s in harsh if s.why))
        found.append(
            Problem(
                f"the plan needs a {item.disruption} of {item.key}",
                why=why,
                next=f"allow it with --allow-disruption {item.key}, or --allow-disruption all",
            )
        )
    return found
