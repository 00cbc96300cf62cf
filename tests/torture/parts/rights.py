"""What `bfinfra privileges` prints is enough, and nothing of it too much.

For each kind's example and for the demo site, an account gets exactly the rights that are printed for plan,
watch, apply or destroy. It must be able to do all of that use; an apply includes creating, changing, and correcting
what others changed. Then each right is taken away alone, and bfinfra must end with an error that names the
right. An administrator grants the rights with pyVmomi and plain HTTP. In a supervisor, the `edit` role is cut
down to what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rights.given import POC, Site, each_one, give, named, without, world
from rights.life import life_of, variants
from rights.lifecycles import Refused, lived, needed, taken
from torture.counting import Count, Effort

from bfinfra.kinds import names
from bfinfra.model.rights import Api, Entity, Rights, Use
from bfinfra.sandbox import Running

OF_WORKLOADS = ("list pods", "list persistentvolumeclaims")
"""What a survey takes only in a cluster where the site has or had workloads."""


def counts(effort: Effort) -> Iterator[Count]:
    with world(effort.folder / "small") as sandbox:
        for kind in effort.some([*names(), *variants()], 2):
            yield from both(kind, sandbox, effort)
    with world(effort.folder / "poc", POC) as sandbox:
        yield from both(POC, sandbox, effort)


def both(kind: str, sandbox: Running, effort: Effort) -> Iterator[Count]:
    enough, fewer = Count(f"`{kind}` with what is printed"), Count(f"`{kind}` with one right fewer")
    if effort.wants(enough.what):
        for use in Use:
            all_of(kind, use, sandbox, effort, enough)
        yield enough
    if effort.wants(fewer.what):
        for use in Use:
            one_fewer(kind, use, sandbox, effort, fewer)
        if fewer.tried:
            yield fewer


def all_of(kind: str, use: Use, sandbox: Running, effort: Effort, count: Count) -> None:
    site = Site.of(kind, effort.folder / "site")
    sandbox.reset()
    with count.trial(f"{use}"):
        lived(site, sandbox, use, lambda: give(sandbox, site, needed(site, sandbox, use)))


def one_fewer(kind: str, use: Use, sandbox: Running, effort: Effort, count: Count) -> None:
    site = Site.of(kind, effort.folder / "site")
    rights = needed(site, sandbox, use)
    for place, name in effort.some(used(site, sandbox, use, rights), 2):
        sandbox.reset()
        with count.trial(f"{use} without {name} on {place}"):
            try:
                lived(
                    site,
                    sandbox,
                    use,
                    lambda place=place, name=name: give(sandbox, site, without(rights, place, name)),
                )
            except Refused as refused:
                assert named(name) in str(refused), f"it does not name it: {refused}"
            else:
                raise AssertionError("nothing failed")


def used(site: Site, sandbox: Running, use: Use, rights: Rights) -> list[tuple[Entity | Api, str]]:
    """Those of the rights that this life takes. What a watch reads a plan reads too. The demo site's servers
    are not changed here: bitfusion_server's example is.
    """
    had, unused = "\nworkload:" in site.text, life_of(site.kind).unused
    every = [
        each
        for each in each_one(rights)
        if (had or each[1] not in OF_WORKLOADS) and (use, each[1]) not in unused
    ]
    if use is Use.WATCH:
        watches = watched(site, sandbox)
        return [each for each in every if each[1].startswith("watch ") and named(each[1]) in watches]
    if site.kind != POC:
        return every
    some = taken(site, sandbox, use)
    return [each for each in every if each[1] in some]


def watched(site: Site, sandbox: Running) -> str:
    """What a watch of this site follows: what is refused to an account that may only list. Of which the site
    has no objects, it follows nothing.
    """
    sandbox.reset()
    try:
        lived(site, sandbox, Use.WATCH, lambda: give(sandbox, site, needed(site, sandbox, Use.PLAN)))
    except Refused as refused:
        return str(refused)
    return ""
