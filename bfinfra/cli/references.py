"""Finds references of a site that don't work without a user's login, or in a container."""

from __future__ import annotations

from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.spec.leads import walk


def variables(site: Site) -> tuple[str, ...]:
    """The names of the environment variables that the site refers to."""
    secrets = (value for _, value in walk(site) if isinstance(value, Secret))
    return tuple(dict.fromkeys(str(each.target) for each in secrets if each.way == "env"))


def no_keyring(site: Site, *, commands: bool = False) -> None:
    """Raises BfinfraError for references to keyrings, which need a user's login. `commands`: for commands as
    well, which a container doesn't have.
    """
    ways = ("keyring", "command") if commands else ("keyring",)
    found = [
        Problem(
            f"{key or 'the site'}: {field} can't be read there",
            site.place(key, field) or "",
            f"a {value.way} belongs to this machine and its user",
            "write {env: NAME} or {file: path}",
        )
        for (key, field), value in walk(site)
        if isinstance(value, Secret) and value.way in ways
    ]
    if found:
        raise BfinfraError(*found)
