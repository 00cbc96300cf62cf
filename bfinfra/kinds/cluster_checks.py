"""Checks of Kubernetes clusters: logins, versions, clocks and privileges."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.formats.shell import word
from bfinfra.kinds.server_checks import Check, skew
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Blocked, Finding, Health, bad, good, warning
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient
    from bfinfra.kinds.checks import CheckContext

OLDEST, TESTED = (1, 16), ((1, 16), (1, 36))  # server-side apply is enabled from 1.16
BY_RBAC = "with: bfinfra privileges SITE --as rbac --cluster {key} | kubectl apply -f -"


def cluster_checks(
    kind: str, enter: Callable[[CheckContext, Key], ClusterClient], given: str = BY_RBAC
) -> Mapping[str, Check]:
    """The checks of the clusters of a kind. `enter`: returns a cluster's API, raises Blocked if it can't be
    reached; `given`: how an administrator grants privileges there, with `{key}` for the resource.
    """

    def entrance(context: CheckContext) -> Iterator[Finding]:
        """A finding per cluster: whether the account can log in."""
        for key in context.of(kind):
            try:
                cluster = enter(context, key)
                cluster.can("list", "pods")  # every account that is logged in may ask this
                yield good(key, f"the account can log in at {cluster.access().url}")
            except Blocked as blocked:
                what = "whether the account can log in, and what it may do there"
                yield Finding(str(key), Health.SKIPPED, what, blocked.why)
            except BfinfraError as error:
                yield from (bad(key, each.what, each.why, each.next) for each in error.problems)

    def each(
        context: CheckContext, look: Callable[[Key, ClusterClient], Iterable[Finding]]
    ) -> Iterator[Finding]:
        for key in context.of(kind):
            with contextlib.suppress(Blocked, BfinfraError):  # `entrance` reports it
                yield from look(key, enter(context, key))

    def versions(context: CheckContext) -> Iterator[Finding]:
        """A finding per cluster: whether bfinfra supports its version."""
        return each(context, _version)

    def clocks(context: CheckContext) -> Iterator[Finding]:
        """A finding per cluster: whether its clock agrees with this machine's."""
        return each(context, functools.partial(_clock, context))

    def rights(context: CheckContext) -> Iterator[Finding]:
        """A finding per cluster: whether the account has the privileges that the site needs."""
        return each(context, functools.partial(_rights, context, given))

    return {
        "clusters.entrance": entrance,
        "clusters.versions": versions,
        "clusters.clocks": clocks,
        "clusters.rights": rights,
    }


def _version(key: Key, cluster: ClusterClient) -> Iterator[Finding]:
    version = cluster.version()
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if number < OLDEST:
        yield bad(
            key,
            f"it runs {version}",
            "server-side apply is enabled from 1.16 on",
            "upgrade it to 1.16 or newer",
        )
    elif not TESTED[0] <= number <= TESTED[1]:
        yield warning(
            key,
            f"it runs {version}",
            f"bfinfra is tested with 1.{TESTED[0][1]} to 1.{TESTED[1][1]}",
            "try it with plan first",
        )
    else:
        yield good(key, f"it runs {version}")


def _clock(context: CheckContext, key: Key, cluster: ClusterClient) -> Iterator[Finding]:
    if theirs := cluster.now():
        yield skew(str(key), (theirs - context.now()).total_seconds())


def _rights(context: CheckContext, given: str, key: Key, cluster: ClusterClient) -> Iterator[Finding]:
    how = f"an administrator gives them {given.format(key=word(key))}"
    asked, lacking = 0, []
    for api, verbs in context.rights.apis.items():
        for verb in verbs if api.cluster == key else ():
            for name in api.names or ("",):
                asked += 1
                if not cluster.can(verb.verb, verb.resource, api.namespace, name):
                    there = f" in {api.namespace}" if api.namespace else ""
                    lacking.append((verb, f"{verb.verb} {verb.resource}{there}"))
    needed = [text for verb, text in lacking if not verb.optional]
    optional = [text for verb, text in lacking if verb.optional]
    if needed:
        yield bad(key, f"the account may not {', '.join(needed)}", next=how)
    if optional:
        yield warning(
            key,
            f"the account may not {', '.join(optional)}",
            "; ".join(dict.fromkeys(verb.optional for verb, _ in lacking if verb.optional)),
            how,
        )
    if not lacking:
        yield good(key, f"the account has all {asked} rights")
