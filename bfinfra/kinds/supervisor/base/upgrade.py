"""The way from one Kubernetes version to another: one minor version at a time, each finished
before the next.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from bfinfra.model.errors import Refusal

NUMBERS = re.compile(r"v(\d+)\.(\d+)(?:\.(\d+))?")
RELEASE = re.compile(r"-vkr\.\d+$")


def numbers(version: str) -> tuple[int, ...]:
    """`v1.20.2+vmware.1` → (1, 20, 2); empty if it is not a version."""
    found = NUMBERS.match(version)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


def matches(full: str, wanted: str) -> bool:
    """Return whether `v1.20.2+vmware.1-tkg.2` matches `v1.20.2` or `v1.20`. A release number, as in
    `v1.34.1+vmware.1-vkr.3`, is compared only if both have one, as a cluster reports its version without it.
    """
    full, wanted = plus(full), plus(wanted)
    if RELEASE.search(wanted) and not RELEASE.search(full):
        wanted = RELEASE.sub("", wanted)
    return full == wanted or (full.startswith(wanted) and full[len(wanted)] in ".+-")


def plus(version: str) -> str:
    """The version with the plus sign that names of objects can't have."""
    return version.replace("---", "+")


def unnumbered(version: str) -> str:
    """Without a release's own number, as clusters name it."""
    return RELEASE.sub("", version)


def newest(versions: Iterable[str], wanted: str) -> str:
    """The newest release that matches a version or its prefix; "" if none does."""
    return max((version for version in versions if matches(version, wanted)), key=_order, default="")


def way(now: str, wanted: str, offered: Collection[str] | None) -> tuple[str, ...]:
    """The versions that a cluster goes through, the wanted one last: between them the newest release of each
    minor version. `offered`: the supervisor's releases in full, None if it doesn't report them. Raises
    Refusal if there is no such way.
    """
    before, after = numbers(now), numbers(wanted)
    if not before or not after or before == after[: len(before)]:
        return (wanted,)
    if after < before[: len(after)]:
        raise Refusal(
            f"the cluster runs {now}; {wanted} is older",
            field="version",
            why="a cluster can't go back to an older version",
            next="write the version that it runs",
        )
    return (*(_through(now, wanted, minor, offered) for minor in range(before[1] + 1, after[1])), wanted)


def _through(now: str, wanted: str, minor: int, offered: Collection[str] | None) -> str:
    step = f"v{numbers(wanted)[0]}.{minor}"
    found = newest(offered or (), step)
    if not found:
        raise Refusal(
            (
                f"from {now} to {wanted} is more than one minor version, and the supervisor offers no "
                f"release {step} to go through"
            ),
            field="version",
            why="Kubernetes is upgraded one minor version at a time",
            next=f"subscribe the content library that holds {step}, or write a nearer version",
        )
    return found


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
