"""Kubernetes APIs: who gets in, their versions, clocks and rights; what a supervisor serves of Tanzu."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.doctor.blocked import Blocked
from bfinfra.doctor.ground import CheckContext
from bfinfra.doctor.servers import judged
from bfinfra.doctor.vcenter import skew
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError
from bfinfra.model.finding import Finding, Health, bad, good, warning
from bfinfra.model.refs import Key

KINDS = ("kubernetes_cluster", "supervisor_namespace", "tanzu_cluster")
OLDEST, TESTED = (1, 16), ((1, 16), (1, 36))  # server-side apply is on from 1.16


def certificates(ground: CheckContext) -> Iterator[Finding]:
    """The certificates of supervisors are trusted before anybody logs in there, then those of the clusters in
    them, and stay good for a month.
    """
    if not ground.of("supervisor_namespace"):
        return
    for server in ground.inside():
        about = f"{server.what} {server.server}"
        try:
            yield judged(about, server.look(ground.seam), server.trust, ground)
        except BfinfraError as error:
            problem = error.problems[0]
            yield bad(about, problem.what, problem.why, problem.next)


def entrance(ground: CheckContext) -> Iterator[Finding]:
    """The account gets into each cluster."""

    def look(key: Key, cluster: ClusterClient) -> Iterator[Finding]:
        cluster.can("list", "pods")  # what everybody may ask who has got in
        yield good(key, f"the account gets in at {cluster.access().url}")

    yield from _each(ground, look, tell=True)


def versions(ground: CheckContext) -> Iterator[Finding]:
    """Each cluster's version is one that bfinfra knows."""

    def look(key: Key, cluster: ClusterClient) -> Iterator[Finding]:
        version = cluster.version()
        number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if number < OLDEST:
            yield bad(
                key,
                f"it runs {version}",
                "server-side apply is on from 1.16 on only",
                "upgrade it to 1.16 or newer",
            )
        elif not TESTED[0] <= number <= TESTED[1]:
            yield warning(
                key,
                f"it runs {version}",
                f"bfinfra is tried with 1.{TESTED[0][1]} to 1.{TESTED[1][1]}",
                "try it with plan first",
            )
        else:
            yield good(key, f"it runs {version}")

    yield from _each(ground, look)


def clocks(ground: CheckContext) -> Iterator[Finding]:
    """Each cluster's clock agrees with ours."""
    yield from _each(
        ground,
        lambda key, cluster: (
            [skew(str(key), (theirs - ground.now()).total_seconds())] if (theirs := cluster.now()) else []
        ),
    )


def rights(ground: CheckContext) -> Iterator[Finding]:
    """The account has the rights that the site needs in each cluster."""

    def look(key: Key, cluster: ClusterClient) -> Iterator[Finding]:
        asked, lacking = 0, []
        for api, verbs in ground.rights.apis.items():
            for verb in verbs if api.cluster == key else ():
                for name in api.names or ("",):
                    asked += 1
                    if not cluster.can(verb.verb, verb.resource, api.namespace, name):
                        lacking.append(
                            (
                                verb,
                                f"{verb.verb} {verb.resource}"
                                + (f" in {api.namespace}" if api.namespace else ""),
                            )
                        )
        needed, optional = (
            [text for verb, text in lacking if not verb.optional],
            [text for verb, text in lacking if verb.optional],
        )
        how = "an administrator gives them " + (
            "by the namespace's access"
            if key.kind == "supervisor_namespace"
            else f"with: bfinfra privileges SITE --as rbac --cluster {key} | kubectl apply -f -"
        )
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

    yield from _each(ground, look)


def tanzu(ground: CheckContext) -> Iterator[Finding]:
    """Each supervisor serves the API of Tanzu clusters that the site is written in."""
    for key, spec in ground.of("tanzu_cluster").items():
        home = ground.site.resources[Key("supervisor_namespace", spec.namespace)]
        supervisor = ground.catalog.supervisors.get(home.cluster)
        if supervisor is None or not supervisor.running:
            yield Finding(
                str(key),
                Health.SKIPPED,
                f"whether {spec.api} is served",
                f"no supervisor runs on {home.cluster}",
            )
        elif ground.supervisor(Endpoint(server=supervisor.endpoint), str(key)).serves(
            spec.api, FORMS[spec.api].kind
        ):
            yield good(key, f"the supervisor serves {spec.api}")
        else:
            yield bad(
                key,
                f"the supervisor serves no {spec.api}",
                next="write an api that it serves: kubectl api-versions shows them",
            )


Look = Callable[[Key, ClusterClient], "Iterator[Finding] | list[Finding]"]


def _each(ground: CheckContext, look: Look, *, tell: bool = False) -> Iterator[Finding]:
    """Every cluster of the site. What can't be entered is left out: `entrance` tells (`tell`)."""
    for key in (key for kind in KINDS for key in ground.of(kind)):
        try:
            yield from look(key, ground.cluster(key))
        except Blocked as blocked:
            if tell:
                yield Finding(
                    str(key),
                    Health.SKIPPED,
                    "whether the account gets in, and what it may do there",
                    blocked.why,
                )
        except BfinfraError as error:
            if tell:
                yield from (bad(key, each.what, each.why, each.next) for each in error.problems)
