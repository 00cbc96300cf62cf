"""What `bfinfra privileges` prints is enough, and nothing of it too much.

For each kind's example and for the demo site, an account gets exactly the rights that are printed for plan,
apply or destroy. It must be able to do all of that use; an apply includes creating, changing, and correcting
what others changed. Then each right is taken away alone, and bfinfra must end with an error that names the
right. An administrator grants the rights with pyVmomi and plain HTTP. In a supervisor, the `edit` role is cut
down to what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rights.given import POC, Site, each_one, give, named, without, world
from rights.life import variants
from rights.lifecycles import Refused, lived, needed, taken
from torture.counting import Count, Effort

from bfinfra.kinds import names
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running


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
    used = (
        taken(site, sandbox, use) if kind == POC else None
    )  # its servers are not changed here: bitfusion_server's example is
    for place, name in effort.some([each for each in each_one(rights) if used is None or each[1] in used], 2):
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
