"""The sandbox world of a site: what the site refers to and does not make itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bfinfra.app.sandbox_world import files, kubernetes, machines, vcenter
from bfinfra.app.sandbox_world.draft import Draft, Hex
from bfinfra.formats.visible import visible
from bfinfra.formats.yaml import Dumper, dumped
from bfinfra.model.site import Site
from bfinfra.spec.layout import formatted

SCHEMA = "world.schema.json"
HEAD = """\
# yaml-language-server: $schema=world.schema.json
# The sandbox of {name}: servers on this machine that the site runs on. Made up are sizes, versions and
# addresses that the site doesn't say. Passwords are generated.

"""


class WrittenWorld(NamedTuple):
    """A world file's text. `left_out`: what the sandbox can't provide for the site, and why."""

    text: str
    left_out: Mapping[str, str]


def world_of(site: Site) -> WrittenWorld:
    """The world in which an apply of the site finds what it needs. Contacts no server."""
    draft = Draft(site)
    vcenter.add(draft)
    machines.add(draft)
    kubernetes.add(draft)
    files.add(draft)
    text = dumped(draft.data(), Dumper=_Dumper, default_flow_style=None, width=4096)
    return WrittenWorld(formatted(Path("world"), HEAD.format(name=visible(site.name)) + text), draft.left_out)


class _Dumper(Dumper):
    """Writes PCI ids in hexadecimal."""


_Dumper.add_representer(
    Hex, lambda dumper, number: dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{number:04x}")
)
