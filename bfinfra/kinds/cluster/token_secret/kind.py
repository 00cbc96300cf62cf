"""A Bitfusion token as Secrets in a cluster's namespaces, in the form that the client's manifests expect."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.bitfusion import Token, read_token
from bfinfra.backends.kubernetes.marks import mark_of, notes
from bfinfra.formats.shell import word
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.replicated_secret import decide
from bfinfra.kinds.cluster.base.replicated_secret.decide import Write
from bfinfra.kinds.cluster.base.replicated_secret.kind import ReplicatedSecret
from bfinfra.kinds.cluster.base.replicated_secret.state import Content, State, values_of
from bfinfra.kinds.cluster.token_secret.spec import FILES, OF_CLIENT, SINGLE, THREE, Spec
from bfinfra.kinds.cluster_locator import Cluster, is_named
from bfinfra.model import kind
from bfinfra.model.awaited import until
from bfinfra.model.compare import Unknown
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.kind import Observation
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.step import Step
from bfinfra.model.suggest import few

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.survey_cache import SurveyCache

FIRST = "kube-system"
"""The namespace from which the device plug-in's webhook takes the token: a new token is written
there first.
"""
HISTORY = "bfinfra.io/token"
"""The annotation of each Secret with, per file, the digests of its present and earlier contents, newest
first. By these bfinfra recognises copies that others made, at whatever time.
"""
WRITTEN = "bfinfra.io/tokenWrittenAt"
"""The annotation with the time of the last replacement, by the cluster's clock: older pods have the earlier
content.
"""
DIGESTS = 8  # digests kept per file
SHOWN = 20  # most namespaces in a message


class TokenSecret(ReplicatedSecret[Spec, State]):
    """A Bitfusion token as Secrets in a cluster's namespaces."""

    document = Document.SINGAPORE_POC
    undescribed = "its content is secret, and bfinfra doesn't read secrets out"
    name = "token_secret"

    def __init__(self, clusters: Clusters, cache: SurveyCache, site: Site) -> None:
        super().__init__(clusters, cache, site)
        self._stale: dict[str, tuple[str, ...]] = {}
        self._before: dict[
            tuple[Endpoint | Unknown, str], tuple[str, Mapping[str, Mapping[str, Sequence[str]]]]
        ] = {}

    def expected(self, name: str, spec: Spec, needs: Mapping[Key, ResolvedRef]) -> Content | None:
        """The token's files, by Secret of its form."""
        need = needs.get(Key("bitfusion_token", spec.token))
        if need is None or need.state is None:
            return None
        return _content(_read(need.state.path, need.state.digest), spec.names(name))

    def unchanged(self, names: Sequence[str], objects: Sequence[Object]) -> bool:
        """Return whether each Secret matches the digests noted on it when it was last written."""
        held = {obj["metadata"]["name"]: obj for obj in objects}
        return all(name in held and _as_noted(held[name]) for name in names)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """See the base class. A survey also finds copies that others made and never refresh. The facts: by
        name, the namespaces with a copy of an earlier token.
        """
        self._stale = {}
        observation = super().observe(wanted, needs, include_unlisted=include_unlisted)
        return replace(observation, facts=dict(self._stale))

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> list[Object]:
        found = super()._read(cluster, wanted, needs, include_unlisted=include_unlisted)
        for name, spec in wanted.items() if include_unlisted else ():
            if spec is None or FIRST not in spec.namespaces or not is_named(spec.cluster, cluster.key):
                continue  # the webhook copies from there
            with contextlib.suppress(
                BfinfraError
            ):  # the survey reports why the token or the cluster can't be read
                if stale := _stale(
                    self.expected(name, spec, needs),
                    cluster.client.list("v1", "Secret", cluster.namespace, name=OF_CLIENT[spec.form]),
                    self._site,
                ):
                    self._stale[name] = stale
        return found

    @staticmethod
    def conflicts(
        wanted: Specs, states: Specs, facts: Mapping[str, tuple[str, ...]] | None
    ) -> Iterator[Conflict]:
        """Namespaces whose pods still use an earlier token."""
        for name, spaces in (facts or {}).items():
            if (spec := wanted.get(key := Key(TokenSecret.name, name))) is not None:
                yield Conflict(
                    Spot(key, "token"),
                    f"there are copies of the earlier token in {few(spaces, SHOWN)} of {spec.cluster}",
                    why="the device plug-in's webhook makes them, and never refreshes them",
                    next=f"bfinfra token rotate SITE {word(spec.token)}",
                    stops=False,
                )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """One step per namespace. The source is the token's path and digest."""
        need = context.needs.get("token")
        source = {"path": need.get("path"), "digest": need.get("digest")} if need is not None else {}
        applied = (state.mark.applied if state and state.mark else None) or {}
        token = spec.token if spec else applied.get("token", name)
        later = (
            until(need.spec.source.file) if need is not None and need.state is None and need.spec else None
        )
        found = decide.steps(name, spec, state, context, what=f"token {token}", source=source, later=later)
        return sorted(found, key=lambda step: not (isinstance(step, Write) and step.namespace == FIRST))

    def run(self, step: Step, report: kind.Report) -> None:
        """Runs one step. A replacement notes the digest of the earlier content."""
        if isinstance(step, Write) and isinstance(step.home, Endpoint) and step.existing and not step.uids:
            cluster = self._clusters.at(step.home)
            at = cluster.now()
            existing = {name: cluster.get("v1", "Secret", name, step.namespace) for name in step.existing}
            self._before[step.home, step.namespace] = (
                at.isoformat() if at else "",
                {name: history(obj) for name, obj in existing.items() if obj},
            )
        super().run(step, report)

    def _manifest(self, step: Write, name: str, values: Mapping[str, bytes]) -> Object:
        body = super()._manifest(step, name, values)
        when, before = self._before.get((step.home, step.namespace), ("", {}))
        noted = {
            file: [*dict.fromkeys([digest(value), *before.get(name, {}).get(file, ())])][:DIGESTS]
            for file, value in values.items()
        }
        body["metadata"]["annotations"] |= {HISTORY: json.dumps(noted, sort_keys=True)} | (
            {WRITTEN: when} if when else {}
        )
        return body

    def content(self, step: Write) -> Content:
        """The token, read again. Raises if it isn't the one that the plan showed."""
        return _content(_read(step.source["path"], step.source["digest"]), step.names)


def _stale(content: Content | None, secrets: Sequence[Object], site: str) -> tuple[str, ...]:
    """The namespaces of unmarked Secrets with content that this site's Secrets have or had, other than the
    desired content.
    """
    new = {digest(value) for values in (content or {}).values() for value in values.values()}
    own = [obj for obj in secrets if (mark := mark_of(obj)) is not None and mark.site == site]
    known = {each for obj in own for digests in history(obj).values() for each in digests}
    held = {
        obj["metadata"]["namespace"]: {
            digest(value) for file, value in values_of(obj).items() if file in FILES
        }
        for obj in secrets
        if mark_of(obj) is None
    }
    return (
        tuple(
            sorted(
                space
                for space, digests in held.items()
                if digests and digests <= known and not digests <= new
            )
        )
        if new
        else ()
    )


def _read(path: str, digest: str) -> Token:
    try:
        token = read_token(Path(path))
    except ValueError as error:
        raise BfinfraError(Problem("the token can't be read", path, str(error))) from None
    if token.digest != digest:
        raise BfinfraError(Problem("the token changed while bfinfra worked with it", path, next="plan again"))
    return token


def _content(token: Token, names: Sequence[str]) -> Content:
    keys = {**SINGLE, **THREE}
    return {name: {key: token.files[key].encode() for key in keys[name]} for name in names}


def files_of(source: Mapping[str, str]) -> dict[str, bytes]:
    """The files of the token that a step's source names."""
    return {file: text.encode() for file, text in _read(source["path"], source["digest"]).files.items()}


def digest(value: bytes) -> str:
    """Half a SHA-256, to recognise copies. A token's files are long and random enough that a digest reveals
    nothing.
    """
    return hashlib.sha256(value).hexdigest()[:32]


def _as_noted(obj: Object) -> bool:
    """Return whether a Secret has the content that its annotation notes; True for one without it."""
    noted, values = _noted(obj), values_of(obj)
    return all(file in values and known and digest(values[file]) == known[0] for file, known in noted.items())


def _noted(obj: Object) -> dict[str, list[str]]:
    try:
        noted = json.loads(notes(obj).get(HISTORY, "{}"))
    except ValueError:
        noted = {}
    return (
        {str(file): [str(each) for each in known or ()] for file, known in noted.items()}
        if isinstance(noted, dict)
        else {}
    )


def history(obj: Object) -> dict[str, list[str]]:
    """File → digests of the present content of this site's Secret, and of the earlier contents in its
    annotation.
    """
    before = _noted(obj)
    return {
        file: [*dict.fromkeys([digest(value), *before.get(file, ())])]
        for file, value in values_of(obj).items()
        if file in FILES
    }
