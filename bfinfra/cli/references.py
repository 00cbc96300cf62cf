"""Finds references of a site that don't work without a user's login, or in a container."""

from __future__ import annotations

from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.spec.leads import walk


def variables(site: Site) -> tuple[str, ...]:
    """The names of the environment variables that the site refers to."""
    names: dict[str, None] = {}
    walk(
        site,
        lambda _, value: (
            names.update({str(value.target): None})
            if isinstance(value, Secret) and value.way == "env"
            else None
        ),
    )
    return tuple(names)


def no_keyring(site: Site, *, commands: bool = False) -> None:
    """Raises BfinfraError for references that don't work without a user's login, or in a container."""
    found: list[Problem] = []
    ways = ("keyring", "command") if commands else ("keyring",)
    walk(
        site,
        lambda at, value: (
            found.append(
                Problem(
                    f"{at[0] or 'the site'}: {at[1]} can't be read there",
                    site.place(*at) or "",
                    f"a {value.way} belongs to this machine and its user",
                    "write {env: NAME} or {file: path}",
                )
            )
            if isinstance(value, Secret) and value.way in ways
            else None
        ),
    )
    if found:
        raise BfinfraError(*found)
