"""Finds references of a site that don't work without a user's login, or in a container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bfinfra.formats import Unwritable, shell
from bfinfra.formats.visible import visible
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.spec.leads import walk


def variables(site: Site) -> tuple[str, ...]:
    """The names of the environment variables that the site refers to."""
    secrets = (value for _, value in walk(site) if isinstance(value, Secret))
    return tuple(dict.fromkeys(str(each.target) for each in secrets if each.way == "env"))


def secret(name: str, namespace: str, env: Iterable[str], files: Mapping[str, Path]) -> tuple[str, str]:
    """Two lines: how to make the Secret with the values of the variables, and the files by their keys. Raises
    BfinfraError.
    """
    into = ("--namespace", namespace) if namespace else ()
    words = [shell.line(("kubectl", "create", "secret", "generic", name, *into))]
    for each in env:
        try:
            words.append(f'--from-literal={shell.variable(each)}="${shell.variable(each)}"')
        except Unwritable as error:
            raise BfinfraError(
                Problem(f"the environment variable {visible(each)} can't be in a Secret", why=f"it {error}")
            ) from None
    words += [shell.word(f"--from-file={key}={path}") for key, path in files.items()]
    return "make its Secret with:", f"  {' '.join(words)}"


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
