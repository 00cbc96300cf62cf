"""Strangers next to every kind: what others made, another site or anybody, is neither changed nor deleted,
whatever this site does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import (
    EVERYTHING,
    EXAMPLES,
    LONG,
    QUICK,
    SPECS,
    apply,
    endings,
    made,
    plan,
    run_context,
    unhurried,
    world,
)
from kinds.unmanaged import entry

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Plan
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

MADE = [kind for kind in names() if kind_named(kind).managed]
every_made_kind = pytest.mark.parametrize("kind", unhurried(MADE))


def renamed(kind: str, folder: Path, site: str) -> Path:
    """The kind's example under another site's name."""
    given = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    given["site"] = (
        # what stands on this machine outlives the sandbox's reset
        f"{site}-{kind.replace('_', '-')}-{folder.name[-8:].strip('_-')}"
    )
    for image in given.get("client_image", {}).values():
        image["context"] = str(
            folder / "context"
        )  # on this machine, not in the sandbox: a folder of the test's own
    home = folder / site
    home.mkdir()
    if not (folder / "manifests").exists():
        (folder / "manifests").symlink_to(SPECS / "manifests")
    (home / "site.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
    return home / "site.yaml"


def without(path: Path, kind: str) -> Path:
    """The same site without the resources of the kind: what it made of it has to go."""
    given = yaml.load(path.read_text(), yaml.BaseLoader)
    given.pop(kind)
    pruned = path.with_name("pruned.yaml")
    pruned.write_text(yaml.safe_dump(given, sort_keys=False))
    return pruned


def anything(found: Plan) -> Allow:
    return Allow(every_delete=True, every_disruption=True, delete=frozenset(item.key for item in found.items))


def forced(
    path: Path, sandbox: Running, allow: Callable[[Plan], Allow] = anything, **how: Any
) -> dict[str, str]:
    """All is allowed; how each ended, or why nothing was started."""
    try:
        options = Options(retry=QUICK, deadline=LONG)
        return endings(
            bfinfra.apply(
                bfinfra.load(path, sandbox=sandbox),
                approve=allow,
                options=options,
                context=run_context(sandbox),
                **how,
            )
        )
    except BfinfraError as error:
        return {"refused": str(error)}


@pytest.mark.thorough("namespace", "virtual_machine")
@every_made_kind
def test_what_another_site_made_under_the_same_name_is_not_ours_to_change_destroy_or_prune(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    theirs, ours = protected(kind, renamed(kind, tmp_path, "theirs")), renamed(kind, tmp_path, "ours")
    assert made(apply(theirs, sandbox))
    before = world(sandbox)
    problems = " ".join(str(problem) for problem in plan(ours, sandbox).problems)
    assert "belongs to" in problems or "bfinfra adopt" in problems or "theirs" in problems, problems
    ended = forced(ours, sandbox)
    assert "refused" in ended or any(text.startswith("failed") for text in ended.values()), ended
    assert world(sandbox) == before
    ended = forced(ours, sandbox, destroy=True)
    assert all("deleted" not in text for text in ended.values()), ended
    assert world(sandbox) == before
    for ended in (
        forced(theirs, sandbox, destroy=True),
        forced(without(theirs, kind), sandbox),
    ):  # their own site may not either: it is protected
        assert "it is protected" in ended.get("refused", ""), ended
    assert world(sandbox) == before
    ended = forced(without(ours, kind), sandbox)
    assert all("deleted" not in text for text in ended.values()), ended
    assert plan(theirs, sandbox).pending == ()


def protected(kind: str, path: Path) -> Path:
    """The same site with `protect: true` on each of the kind."""
    given = yaml.load(path.read_text(), yaml.BaseLoader)
    for fields in given[kind].values():
        fields["protect"] = "true"
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    return path


@pytest.mark.thorough("namespace", "virtual_machine")
@every_made_kind
def test_what_nobody_marked_is_not_taken_over_where_ours_shall_go(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    ours = renamed(kind, tmp_path, "ours")
    context(kind, ours, sandbox)
    look = entry(kind).plant(sandbox, tmp_path, entry(kind).at)
    before, theirs = world(sandbox), look()
    assert [problem for problem in plan(ours, sandbox).problems if "bfinfra adopt" in str(problem)]
    assert "bfinfra adopt" in forced(ours, sandbox)["refused"]
    assert (world(sandbox), look()) == (before, theirs)


@pytest.mark.thorough("namespace", "virtual_machine")
@every_made_kind
def test_what_is_called_alike_stays_and_what_is_inside_is_named_before_it_goes(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    ours, of = renamed(kind, tmp_path, "ours"), entry(kind)
    context(kind, ours, sandbox)
    looks = [of.plant(sandbox, tmp_path, name) for name in of.near]
    before, alike = world(sandbox), [look() for look in looks]
    assert made(apply(ours, sandbox))
    assert [look() for look in looks] == alike
    pruned = without(ours, kind)
    if not isinstance(of.inside, str):
        names_it(pruned, sandbox, *of.inside)
    assert "refused" not in forced(pruned, sandbox)
    assert [look() for look in looks] == alike
    assert world(sandbox) == before


def names_it(pruned: Path, sandbox: Running, put: Callable[[Running], object], what: str) -> None:
    """All deletions are allowed, but that of what holds something of others wants the name itself."""
    put(sandbox)
    before = world(sandbox)
    assert what in [each for item in plan(pruned, sandbox).items for each in item.contents]
    refused = forced(pruned, sandbox, lambda _: EVERYTHING)["refused"]
    assert "contains objects that are not this site's" in refused
    assert what in refused
    assert world(sandbox) == before


def context(kind: str, ours: Path, sandbox: Running) -> None:
    """What the example needs besides the kind itself."""
    assert made(apply(without(ours, kind), sandbox))
