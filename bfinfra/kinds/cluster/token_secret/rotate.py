"""A token_secret during a rotation: the same decisions, and in addition the copies that others made of it,
and the pods that use them.

The webhook of the device plug-in copies the token's Secrets from kube-system to wherever a pod needs them,
without a mark, and never refreshes them. bfinfra recognises such a copy by content that this site's Secrets
have or had. It reports other Secrets of these names and leaves them alone.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import mark_of, notes
from bfinfra.kinds.cluster.base.objects import Object, place_of
from bfinfra.kinds.cluster.base.replicated_secret.state import State, values_of
from bfinfra.kinds.cluster.token_secret.consumers import Consumer, consumers
from bfinfra.kinds.cluster.token_secret.kind import WRITTEN, TokenSecret, digest, files_of, history
from bfinfra.kinds.cluster.token_secret.spec import FILES, FORMS, Spec
from bfinfra.kinds.cluster_locator import Cluster, api_of
from bfinfra.model import kind
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Problem, SiteError
from bfinfra.model.kind import Observation
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness, Ready, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import few, nearest

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.survey_cache import SurveyCache

NAMES = frozenset(name for form in FORMS.values() for name in form)
RESTARTED = "bfinfra.io/token"
SHOWN = 20  # most namespaces or pods in a message
GOOD, OLD, STALE, OTHER = "good", "ours, and to be written", "a stale copy", "of another token of this site"
Looked = tuple[Cluster, list[Object], list[Object]]
"""Secrets with a token's names, and pods."""


@dataclass(frozen=True)
class Stray:
    """A stale copy without a mark. `version`: its resourceVersion; `files`: the token's files in it."""

    namespace: str
    name: str
    version: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """The other findings of a rotation, for one resource: by cluster name, the stale copies and the workloads
    to restart.
    """

    restart: bool
    token: str = ""
    """The first digits of the new token's digest."""
    stale: Mapping[Endpoint, tuple[str, tuple[Stray, ...]]] = field(default_factory=dict)
    consumers: Mapping[Endpoint, tuple[Consumer, ...]] = field(default_factory=dict)
    left: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Refresh(Step):
    """replace the stale copies of the {what} in {cluster}: {where}"""

    rights = (may("patch", "secrets", "everywhere"),)

    what: str
    cluster: str
    where: str
    home: Endpoint
    strays: tuple[Stray, ...]
    source: Mapping[str, Any]

    @property
    def exclusive(self) -> bool:
        """True: the call replaces only the version that was read."""
        return True


@dataclass(frozen=True, kw_only=True)
class Restart(Step):
    """restart {consumer} in namespace {namespace} of {cluster}, which holds the old token"""

    rights = (may("patch", "deployments.apps statefulsets.apps daemonsets.apps", "everywhere"),)

    consumer: str
    namespace: str
    cluster: str
    home: Endpoint
    token: str


def about(site: Site, token: str) -> frozenset[Key]:
    """The token to rotate, "" for the only one, and its token_secrets. Raises SiteError if there is none, or
    if it must be chosen.
    """
    used = {key: spec.token for key, spec in site.resources.items() if key.kind == TokenSecret.name}
    names = sorted(set(used.values()))
    if token not in names and (token or len(names) != 1):
        what = (
            f"no token_secret holds the token {token}"
            if token
            else "the site has several tokens"
            if names
            else "the site puts no token into any cluster"
        )
        raise SiteError(Problem(what, next=nearest(token, names) or "write a token_secret"))
    name = token or names[0]
    return frozenset({Key("bitfusion_token", name), *(key for key, each in used.items() if each == name)})


class Rotation(TokenSecret):
    """A Bitfusion token as Secrets, and all its copies."""

    step_types = (*TokenSecret.step_types, Refresh, Restart)
    resource_privileges = (
        *TokenSecret.resource_privileges,
        may("list", "secrets pods", "everywhere"),
        may("get", "replicasets.apps deployments.apps statefulsets.apps daemonsets.apps", "everywhere"),
    )

    def __init__(self, clusters: Clusters, cache: SurveyCache, site: Site, *, restart: bool) -> None:
        super().__init__(clusters, cache, site)
        self._restart = restart
        self._specs: dict[str, Spec] = {
            key.name: spec for key, spec in site.resources.items() if key.kind == self.name
        }
        self._found: dict[str, Found] = {}

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads in addition every Secret with a token's names and every pod, in each cluster of the site."""
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        answers = self._locator.ask({}, needs, _look, include_unlisted=True)
        for name, spec in wanted.items():
            if spec is not None and (content := self.expected(name, spec, needs)) is not None:
                new = {key: digest(value) for values in content.values() for key, value in values.items()}
                mine = [key for key in answers.found if self._looks_after(key.name, spec.token) == name]
                self._found[name] = self._judged(
                    spec.token,
                    new,
                    {key: (answers.clusters[key], *answers.found[key]) for key in answers.found},
                    mine,
                )
        unseen = {
            name: error
            for error in answers.unreadable.values()
            for name, spec in wanted.items()
            if spec is not None
        }  # a cluster that can't be read may have a copy, so nothing is rotated at all
        return Observation(
            observation.states, dict(self._found), {**answers.unreadable, **unseen, **observation.unreadable}
        )

    def _looks_after(self, cluster: str, token: str) -> str:
        """The resource that replaces copies in a cluster: the first there with this token, else the first
        with it anywhere.
        """
        names = sorted(name for name, spec in self._specs.items() if spec.token == token)
        return next((name for name in names if self._specs[name].cluster == cluster), names[0])

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: object) -> Iterator[Conflict]:
        """None: the rotation replaces stale copies."""
        return iter(())

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """The steps: this site's own copies, those in kube-system first; then copies of others; then
        restarts.
        """
        steps = list(TokenSecret.steps(name, spec, state, context))
        found: Found | None = (context.facts or {}).get(name)
        need = context.needs.get("token")
        if spec is None or found is None or need is None:
            return steps
        source = {"path": need.get("path"), "digest": need.get("digest")}
        for home, (cluster, strays) in found.stale.items():
            where = few([*dict.fromkeys(stray.namespace for stray in strays)], SHOWN)
            steps.append(
                Refresh(
                    what=f"token {spec.token}",
                    cluster=cluster,
                    where=where,
                    home=home,
                    strays=strays,
                    source=source,
                    changes=(
                        Change(f"copies in {cluster}", "the token before", f"as in token {spec.token}"),
                    ),
                )
            )
        for home, listed in found.consumers.items() if found.restart else ():
            steps += [
                Restart(
                    consumer=f"{each.kind}/{each.name}",
                    namespace=each.namespace,
                    cluster=each.cluster,
                    home=home,
                    token=found.token,
                    changes=(
                        Change(
                            f"{each.kind}/{each.name} in {each.namespace}",
                            "started with the token before",
                            "restarted",
                        ),
                    ),
                )
                for each in listed
                if each.controlled and not each.notified
            ]
        return steps

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The whole cluster, or the supervisor namespace, as copies may be in any namespace."""
        return {
            **TokenSecret.places(name, spec, needs, datacenter),
            "everywhere": (api_of(needs["cluster"], "", None),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready when every restarted workload has the new token. The note is what was left alone."""
        found = self._found.get(state.mark.name) if state.mark else None
        if found is None:
            return READY
        every = [each for listed in found.consumers.values() for each in listed]
        if found.restart and (late := next((each for each in every if each.controlled and each.late), None)):
            return waiting(
                f"{late.kind}/{late.name} in {late.namespace} of {late.cluster} still has pods with the "
                "earlier token"
            )
        notified = [
            f"{each.kind} {each.namespace}/{each.name} of {each.cluster}"
            for each in every
            if not (found.restart and each.controlled)
        ]
        parts = [
            f"left as they are: {few(found.left, SHOWN)}" if found.left else "",
            (
                f"with the earlier token until they are restarted{'' if found.restart else ' (--restart)'}"
                f": {few(notified, SHOWN)}"
            )
            if notified
            else "",
        ]
        return Readiness(Ready.READY, note="; ".join(filter(None, parts)))

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step: the copies of one cluster, or one workload."""
        match step:
            case Refresh(home=home, strays=strays):
                cluster, token = self._clusters.at(home), files_of(step.source)
                at = cluster.now()
                for stray in strays:
                    data = {file: base64.b64encode(token[file]).decode() for file in stray.files}
                    metadata = {
                        "resourceVersion": stray.version,
                        "annotations": {WRITTEN: at.isoformat() if at else None},
                    }
                    cluster.patch(
                        "v1", "Secret", stray.name, {"metadata": metadata, "data": data}, stray.namespace
                    )
            case Restart(home=home):
                what, _, name = step.consumer.partition("/")
                body = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: step.token}}}}}
                self._clusters.at(home).patch("apps/v1", what, name, body, step.namespace)
            case _:
                super().run(step, report)

    def _judged(
        self, name: str, new: Mapping[str, str], read: Mapping[Key, Looked], mine: Iterable[Key]
    ) -> Found:
        """Sorts the Secrets into stale copies and others, and finds who uses them."""
        known = self._known(name, new, [obj for _, secrets, _ in read.values() for obj in secrets])
        token = digest("".join(new[file] for file in sorted(new)).encode())[:16]
        stale: dict[Endpoint, tuple[str, tuple[Stray, ...]]] = {}
        holders: dict[Endpoint, tuple[Consumer, ...]] = {}
        left: list[str] = []
        for key in mine:
            cluster, secrets, pods = read[key]
            judged = [(obj, self._verdict(obj, name, new, known)) for obj in secrets]
            if strays := tuple(_stray(obj) for obj, verdict in judged if verdict == STALE):
                stale[cluster.endpoint] = key.name, strays
            left += [
                f"Secret {'/'.join(place_of(obj))} of {key.name} ({verdict})"
                for obj, verdict in judged
                if verdict not in (GOOD, OLD, STALE, OTHER)
            ]
            since = {
                place_of(obj): None if verdict in (OLD, STALE) else notes(obj).get(WRITTEN, "")
                for obj, verdict in judged
                if verdict in (GOOD, OLD, STALE)
            }
            if found := consumers(cluster.client, key.name, pods, since, (RESTARTED, token)):
                holders[cluster.endpoint] = found
        return Found(self._restart, token, stale, holders, tuple(left))

    def _verdict(self, obj: Object, name: str, new: Mapping[str, str], known: Mapping[str, set[str]]) -> str:
        """One of the verdicts above, or why a Secret is left as it is."""
        now = {file: digest(value) for file, value in _values(obj).items()}
        fresh = all(new.get(file) == each for file, each in now.items())
        owner = self._own_name(obj)
        if owner in self._specs:
            return OTHER if self._specs[owner].token != name else GOOD if fresh else OLD
        if fresh:
            return GOOD
        if owner is None and mark_of(obj) is not None:
            return "it belongs to another site"
        return (
            STALE
            if all(each in known.get(file, ()) for file, each in now.items())
            else "it has no mark, and no token of this site"
        )

    def _known(self, name: str, new: Mapping[str, str], secrets: Iterable[Object]) -> dict[str, set[str]]:
        """File → digests of the present, earlier and new contents of this site's Secrets."""
        known = {file: {each} for file, each in new.items()}
        for obj in secrets:
            owner = self._own_name(obj)
            if owner in self._specs and self._specs[owner].token == name:
                for file, digests in history(obj).items():
                    known.setdefault(file, set()).update(digests)
        return known


def _stray(obj: Object) -> Stray:
    return Stray(*place_of(obj), str(obj["metadata"]["resourceVersion"]), tuple(_values(obj)))


def _look(cluster: Cluster) -> tuple[list[Object], list[Object]]:
    """Every Secret with a token's names, and every pod."""
    secrets = [
        obj
        for obj in cluster.client.list("v1", "Secret", cluster.namespace)
        if obj["metadata"]["name"] in NAMES and _values(obj)
    ]
    return secrets, cluster.client.list("v1", "Pod", cluster.namespace)


def _values(obj: Object) -> dict[str, bytes]:
    """The token's files in a Secret."""
    return {file: value for file, value in values_of(obj).items() if file in FILES}
