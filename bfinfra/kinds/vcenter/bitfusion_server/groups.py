"""Servers that form one Bitfusion cluster: a first one, and those that join it. (Bitfusion 4.0 guide: 1, 3 or
more servers; with 2 the loss of either loses the quorum.)
"""

from __future__ import annotations

from bfinfra.kinds.vcenter.bitfusion_server.spec import Spec
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal

LOSING = 2
"""A group of this many servers loses its majority when one fails."""


def check(name: str, spec: Spec, context: PlanContext) -> None:
    """Raises Refusal for a group that can't work. A server without `first` is a group of its own, or is
    checked with the servers that name it.
    """
    if spec.first is None:
        return
    leader = context.needs["first"].spec
    if spec.first == name or (leader is not None and leader.first is not None):
        raise Refusal(
            f"{spec.first} is not the first server of a group",
            field="first",
            why="its own field `first` names another server"
            if spec.first != name
            else "a server can't come after itself",
            next="name the one server of the group that has no first",
        )
    others = [
        peer
        for peer, (other, _) in context.siblings.items()
        if other is not None and peer != spec.first and other.first == spec.first
    ]
    if 1 + 1 + len(others) == LOSING:
        raise Refusal(
            f"{spec.first} and {name} are a group of {LOSING} servers",
            field="first",
            why="when either fails the other has no majority, and serves no client",
            next="add a third one, which may have gpus: 0, or leave first out and have two groups of one",
        )
