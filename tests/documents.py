"""The site of a source document on the sandbox: applied whole, and its file with changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import apply, plan, world

from bfinfra import sandbox
from bfinfra.sandbox import Running

Changed = Sequence[tuple[str, str, str, set[str]]]
"""A text of the file, another in its place, the resource that changes by it, and those of its fields that
do.
"""


@contextmanager
def applied(site: Path, described: Path, folder: Path) -> Iterator[Any]:
    """A sandbox of the described world, without waiting times, with the site applied to it. Beside what a
    sandbox has, `site`, `before`: the world without the site, and `outcome`.
    """
    running: Any
    with started(described, folder) as running:
        running.site, running.before = site, world(running)
        running.outcome = apply(site, running)
        yield running


@contextmanager
def started(described: Path, folder: Path, pace: float = 0) -> Iterator[Running]:
    """A sandbox of the described world, with a state of bfinfra's own beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "state"))
        yield sandbox.start(described, folder / "sandbox", pace=pace)
        sandbox.stop(folder / "sandbox")


def edited(site: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy of the site with texts replaced, beside what the site's folder has."""
    text = site.read_text()
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the site"
        text = text.replace(old, new)
    for each in site.parent.iterdir():
        if each.is_dir() and not (folder / each.name).exists():
            (folder / each.name).symlink_to(each)
    (folder / "site.yaml").write_text(text)
    return folder / "site.yaml"


def named(site: Path, folder: Path, changed: Changed, running: Running) -> dict[str, set[str]]:
    """The fields that the plan names, by resource, after all these changes in one file."""
    path = edited(site, folder, *((old, new) for old, new, _, _ in changed))
    return {str(item.key): {change.field for change in item.named} for item in plan(path, running).pending}


def expected(changed: Changed) -> dict[str, set[str]]:
    """The fields that change, by resource."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, _, key, fields in changed:
        found[key] |= fields
    return dict(found)
