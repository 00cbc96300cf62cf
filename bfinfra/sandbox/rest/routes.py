"""Routes: the handler of each method and path, and the context that a handler gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from bfinfra.sandbox.rest.errors import Refused

if TYPE_CHECKING:
    from bfinfra.sandbox.handler import Request
    from bfinfra.sandbox.inventory import Inventory
    from bfinfra.sandbox.rest.state import RestState
    from bfinfra.sandbox.sessions import Session

Handler = Callable[..., Any]


@dataclass
class Call:
    """One call: its caller, its path and parameters, and the state that it works on. `spec` is the JSON
    body.
    """

    request: Request
    spec: Any
    session: Session
    inventory: Inventory
    state: RestState

    def need(self, privilege: str, what: str, entity: str = "") -> None:
        """Raises Refused (UNAUTHORIZED) if the caller lacks a privilege on an entity, by its id; on the root
        where none is given.
        """
        from bfinfra.sandbox.inventory.permissions import holds  # noqa: PLC0415 - SOAP's types load when the first call comes

        if not holds(self.inventory, self.session.user, privilege, self.inventory.objects.get(entity)):
            raise Refused(
                "UNAUTHORIZED",
                f"User {self.session.user.name} does not have the privilege {privilege} on {what}.",
            )

    @cached_property
    def query(self) -> dict[str, list[str]]:
        """The query's parameters; /rest writes `filter.names.1`, /api `names`."""
        found: dict[str, list[str]] = {}
        for name, value in parse_qsl(self.request.query, keep_blank_values=True):
            plain = re.sub(r"^filter\.|\.\d+$", "", name)
            found.setdefault(plain, []).append(value)
        return found


@dataclass(frozen=True)
class Route:
    """A handler for a method, a path pattern and, where one is given, an action."""

    method: str
    pattern: re.Pattern[str]
    action: str
    handle: Handler


ROUTES: list[Route] = []


def route(method: str, path: str, action: str = "") -> Callable[[Handler], Handler]:
    """Register `handler(call, …)` for a path under /api; {names} in it become arguments."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def register(handle: Handler) -> Handler:
        ROUTES.append(Route(method, pattern, action, handle))
        return handle

    return register


def find(method: str, path: str, action: str) -> tuple[Handler, dict[str, str]]:
    """The handler and its arguments; /rest writes ids as "id:…". Refused (OPERATION_NOT_FOUND) names what is
    not there.
    """
    fit = [
        (each, matched)
        for each in ROUTES
        if each.method == method and each.action == action and (matched := each.pattern.fullmatch(path))
    ]
    if fit:
        each, matched = min(
            fit, key=lambda found: found[0].pattern.groups
        )  # a word that is written out comes before any name
        return each.handle, {
            name: unquote(value).removeprefix("id:") for name, value in matched.groupdict().items()
        }
    asked = f"{method} /api{path}" + (f"?action={action}" if action else "")
    raise Refused("OPERATION_NOT_FOUND", f"The sandbox does not implement {asked}.")
