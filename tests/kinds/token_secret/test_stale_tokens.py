"""What a rotation decides of each Secret that it finds, and what it writes: on clusters that are only lists."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from kinds.token_secret.test_token_consumers import owner

from bfinfra.backends.bitfusion import read_token
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.backends.survey_cache import SurveyCache
from bfinfra.kinds.cluster.base.replicated_secret.decide import Write
from bfinfra.kinds.cluster.base.replicated_secret.state import Copy
from bfinfra.kinds.cluster.token_secret.consumers import Consumer
from bfinfra.kinds.cluster.token_secret.kind import HISTORY, WRITTEN, digest
from bfinfra.kinds.cluster.token_secret.rotate import (
    Found,
    Refresh,
    Restart,
    Rotation,
    Spec,
    State,
    Stray,
    about,
)
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import RemoteError, SiteError
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import READY, Ready
from bfinfra.model.refs import Key
from bfinfra.model.rights import Api
from bfinfra.model.site import Site
from bfinfra.sandbox.factories.token import make_token

Object = dict[str, Any]
NAME, YAML = "bitfusion-secret", "bitfusion-client-secret-client.yml"
NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
LATER, EARLIER = "2026-01-01T00:02:00Z", "2026-01-01T00:00:00Z"
HOME = Endpoint("k1")


class Token(NamedTuple):
    path: Path
    digest: str
    files: dict[str, bytes]

    @property
    def id(self) -> str:
        """What tells pods which token they were restarted for."""
        each = [hashlib.sha256(self.files[file]).hexdigest()[:32] for file in sorted(self.files)]
        return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Token]:
    found = {}
    for name in ("new", "old", "older", "theirs"):
        path = tmp_path_factory.mktemp("tokens") / f"{name}.tar"
        make_token(path, name=name)
        read = read_token(path)
        found[name] = Token(path, read.digest, {file: text.encode() for file, text in read.files.items()})
    return found


def secret(
    space: str, files: dict[str, bytes], name: str = NAME, mark: Mark | None = None, **notes: Any
) -> Object:
    data = {file: base64.b64encode(value).decode() for file, value in files.items()}
    metadata = {"name": name, "namespace": space, "uid": space, "resourceVersion": "7", "annotations": notes}
    made = {"kind": "Secret", "metadata": metadata, "data": data}
    return marked(made, mark) if mark else made


def of(name: str, site: str = "s", kind: str = "token_secret") -> Mark:
    return Mark(site, f"{kind}/{name}", {})


T = of("t")


def pod(space: str, name: str = "p", at: str = EARLIER, secrets: str = NAME, of: str = "") -> Object:
    metadata = {"name": name, "namespace": space, "creationTimestamp": at}
    return {
        "kind": "Pod",
        "metadata": {**metadata, **(owner("Deployment", of) if of else {})},
        "spec": {"volumes": [{"secret": {"secretName": secrets}}]},
    }


class OneCluster:
    """A cluster of these objects, which remembers what it was asked, and what was written."""

    def __init__(self, *objects: Object, lost: str = "") -> None:
        self.objects, self.lost = objects, lost
        self.asked: list[tuple[str, ...]] = []
        self.written: list[tuple[Any, ...]] = []
        self.time: datetime | None = NOW

    def list(
        self, api: str, kind: str, namespace: str = "", labels: str = "", *, name: str = ""
    ) -> list[Object]:
        self.asked.append(("list", kind, namespace, labels, name))
        if kind == self.lost:
            raise RemoteError("it is lost")
        return [
            each
            for each in self.objects
            if (api, kind) == ("v1", each["kind"])
            and (not labels or "labels" in each["metadata"])
            and namespace in {"", each["metadata"]["namespace"]}
            and name in {"", each["metadata"]["name"]}
        ]

    def get(self, api: str, kind: str, name: str, namespace: str = "") -> Object | None:
        self.asked.append(("get", kind, namespace, name))
        places = (
            (each["kind"], each["metadata"]["name"], each["metadata"]["namespace"]) for each in self.objects
        )
        return dict(zip(places, self.objects, strict=True)).get((kind, name, namespace))

    def find(self, api: str, kind: str, places: Any, *rest: Any) -> list[Object]:
        return [each for space, name in places for each in self.list(api, kind, space, name=name)]

    def names(self, *rest: Any) -> list[Object]:
        return []

    def now(self) -> datetime | None:
        return self.time

    def create(self, body: Object) -> Object:
        self.written.append((body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]))
        return body

    def patch(self, api: str, kind: str, name: str, body: Object, namespace: str) -> None:
        self.written.append((api, kind, namespace, name, body))


class SomeClusters:
    def __init__(self, **clusters: OneCluster) -> None:
        self.by_name, self.cache = clusters, SurveyCache()

    def at(self, home: Endpoint) -> OneCluster:
        return self.by_name[home.server]

    def needs(self, token: Token) -> dict[Key, ResolvedRef]:
        class Where(NamedTuple):
            endpoint: Endpoint

        found = {
            (key := Key("supervisor_namespace" if name == "ns" else "kubernetes_cluster", name)): ResolvedRef(
                key, None, Where(Endpoint(name, namespace="ns" if name == "ns" else ""))
            )
            for name in self.by_name
        }
        return found | {(key := Key("bitfusion_token", "tok")): ResolvedRef(key, None, token)}


def spec(cluster: str = "k1", token: str = "tok", *spaces: str) -> Spec:
    return Spec(cluster=cluster, token=token, form="single", namespaces=spaces or ("kube-system",))


def rotation(clusters: SomeClusters, specs: dict[str, Spec], *, restart: bool = False) -> Rotation:
    site = Site("s", None, {Key("token_secret", name): each for name, each in specs.items()})
    return Rotation(cast("Any", clusters), clusters.cache, site, restart=restart)


def looked(
    token: Token, clusters: dict[str, OneCluster], specs: dict[str, Spec] | None = None
) -> dict[str, Found]:
    there = SomeClusters(**clusters)
    wanted = specs or {"t": spec()}
    tok = {name: each for name, each in wanted.items() if each.token == "tok"}
    facts: dict[str, Found] = rotation(there, wanted).observe(tok, there.needs(token)).facts
    return facts


def strays(found: Found) -> dict[str, list[str]]:
    return {
        cluster: [f"{each.namespace}/{each.name}" for each in stale]
        for cluster, stale in found.stale.values()
    }


def test_a_copy_is_stale_if_this_site_has_or_had_its_content_and_nothing_of_others_is_touched(tokens):
    new, old, older, theirs = (tokens[name].files for name in ("new", "old", "older", "theirs"))
    noted = json.dumps({file: [digest(value)] for file, value in older.items()})
    had = of("t")
    there = OneCluster(
        secret("kube-system", old, mark=had, **{HISTORY: noted}),
        secret("fresh", new),
        secret("now", old),
        secret("once", older),
        secret("part", {"client.yaml": older["client.yaml"], "more": b"x"}, YAML),
        secret("mixed", {"client.yaml": old["client.yaml"], "ca.crt": theirs["ca.crt"]}),
        secret("stranger", theirs),
        secret("another-site", old, mark=of("t", "elsewhere")),
        secret("another-kind", old, mark=of("t", kind="manifests")),
        secret("another-site-fresh", new, mark=of("t", "elsewhere")),
        secret("removed", old, mark=of("gone")),
        secret("other-token", theirs, mark=of("u")),
        secret("copy-of-other-token", theirs),
        secret("other-name", old, "some-secret"),
        secret("no-token-in-it", {"password": b"x"}),
    )
    (found,) = looked(tokens["new"], {"k1": there}, {"t": spec(), "u": spec("k1", "other", "u")}).values()
    assert strays(found) == {
        "k1": ["now/bitfusion-secret", "once/bitfusion-secret", f"part/{YAML}", "removed/bitfusion-secret"]
    }
    ((_, stale),) = found.stale.values()
    assert stale[2] == Stray("part", YAML, "7", ("client.yaml",))
    unknown, elsewhere = "it has no mark, and no token of this site", "it belongs to another site"
    assert found.left == (
        f"Secret mixed/{NAME} of k1 ({unknown})",
        f"Secret stranger/{NAME} of k1 ({unknown})",
        f"Secret another-site/{NAME} of k1 ({elsewhere})",
        f"Secret another-kind/{NAME} of k1 ({elsewhere})",
        f"Secret copy-of-other-token/{NAME} of k1 ({unknown})",
    )
    assert found.token == tokens["new"].id


def test_who_uses_the_token_is_told_by_when_its_secret_was_replaced(tokens):
    new, old, theirs = (tokens[name].files for name in ("new", "old", "theirs"))
    when = {WRITTEN: NOW.isoformat()}
    there = OneCluster(
        secret("kube-system", old, mark=of("t")),
        secret("fresh", new, **when),
        secret("own", new, mark=of("t"), **when),
        secret("unnoted", new),
        secret("copy", old, **when),
        secret("stranger", theirs),
        secret("other", theirs, mark=of("u"), **when),
        *(pod(space) for space in ("fresh", "unnoted", "stranger", "other")),
        *(pod(space, at=LATER) for space in ("kube-system", "copy", "own")),
        pod("fresh", "young", LATER),
    )
    (found,) = looked(tokens["new"], {"k1": there}, {"t": spec(), "u": spec("k1", "other", "u")}).values()
    assert found.consumers == {
        HOME: tuple(
            Consumer("Pod", space, "p", "k1", notified=False, late=True)
            for space in ("copy", "fresh", "kube-system")
        )
    }


def test_a_workload_that_was_restarted_for_this_token_is_known_by_its_annotation(tokens):
    new = tokens["new"]
    template = {"metadata": {"annotations": {"bfinfra.io/token": new.id}}}
    there = OneCluster(
        secret("kube-system", new.files, **{WRITTEN: NOW.isoformat()}),
        pod("kube-system", of="web"),
        {
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "kube-system"},
            "spec": {"template": template},
        },
    )
    (found,) = looked(new, {"k1": there}).values()
    assert [(each.name, each.notified) for each in found.consumers[HOME]] == [("web", True)]


def test_each_cluster_is_looked_after_once_also_those_that_have_no_token_of_their_own(tokens):
    old, theirs = tokens["old"].files, tokens["theirs"].files
    clusters = {
        "k1": OneCluster(secret("kube-system", old, mark=of("b"))),
        "k2": OneCluster(secret("kube-system", old, mark=of("a")), secret("x", old)),
        **{name: OneCluster(secret("x", old), secret("y", theirs)) for name in ("k3", "k4")},
    }
    found = looked(tokens["new"], clusters, {"b": spec("k1"), "a": spec("k2"), "c": spec("k2")})
    assert {name: strays(each) for name, each in found.items()} == {
        "a": {name: [f"x/{NAME}"] for name in ("k2", "k3", "k4")},
        "b": {},
        "c": {},
    }
    left = "it has no mark, and no token of this site"
    assert found["a"].left == tuple(f"Secret y/{NAME} of {name} ({left})" for name in ("k3", "k4"))


def test_of_a_supervisor_only_its_namespace_is_read(tokens):
    there = OneCluster()
    looked(tokens["new"], {"ns": there}, {"t": spec("ns")})
    assert {("list", "Secret", "ns", "", ""), ("list", "Pod", "ns", "", "")} <= {*there.asked}
    assert not any(each[:3] in {("list", "Secret", ""), ("list", "Pod", "")} for each in there.asked)


def test_while_one_cluster_can_not_be_read_no_token_is_replaced_anywhere(tokens):
    clusters = SomeClusters(k1=OneCluster(), k2=OneCluster(lost="Pod"))
    wanted = {"t": spec("k1"), "gone": None}
    unreadable = (
        rotation(clusters, {"t": spec("k1")}).observe(wanted, clusters.needs(tokens["new"])).unreadable
    )
    assert {name: error.problems[0].what for name, error in unreadable.items()} == {
        "(all in kubernetes_cluster/k2)": "it is lost",
        "t": "it is lost",
    }


def test_what_is_asked_for_again_is_read_by_name_and_a_survey_also_finds_what_left_the_file(tokens):
    had = secret("kube-system", tokens["new"].files, mark=of("left"))
    for listed in (False, True):
        there = OneCluster(had)
        clusters = SomeClusters(k1=there)
        seen = rotation(clusters, {"t": spec("k1", "tok", "a")})
        needs, wanted = clusters.needs(tokens["new"]), {"t": spec("k1", "tok", "a")}
        states = (
            seen.observe(wanted, needs) if listed else seen.observe(wanted, needs, include_unlisted=False)
        ).states
        assert [*states] == (["left"] if listed else [])
        assert (("get", "Secret", "a", NAME) in there.asked) is not listed


def test_a_token_that_is_not_there_yet_has_nothing_to_rotate(tokens):
    clusters = SomeClusters(k1=OneCluster(secret("x", tokens["old"].files)))
    needs = clusters.needs(tokens["new"])
    del needs[Key("bitfusion_token", "tok")]
    assert rotation(clusters, {"t": spec()}).observe({"t": spec()}, needs).facts == {}


def test_own_secrets_are_written_before_copies_are_replaced(tokens):
    needs = {
        field: ResolvedRef(Key(kind, name), None, state)
        for field, kind, name, state in (
            ("token", "bitfusion_token", "tok", tokens["new"]),
            ("cluster", "kubernetes_cluster", "k1", None),
        )
    }
    found = Found(restart=False, stale={HOME: ("k1", (Stray("a", NAME, "7", ("ca.crt",)),))})
    context = PlanContext(Mark("s", "token_secret/t"), needs, facts={"t": found})
    mark = T.committed(spec().applied())
    copies = {"kube-system": Copy(frozenset({NAME}), right=True, mark=mark)}
    there = State(mark=mark, cluster="k1", home=HOME, copies=copies, namespaces=("kube-system",))

    def titles(wanted: Spec | None, state: State | None) -> list[str]:
        return [each.title() for each in Rotation.steps("t", wanted, state, context)]

    write, refresh = (
        "write token tok to namespace kube-system in k1",
        "replace the stale copies of the token tok in k1: a",
    )
    assert titles(spec(), None) == [write, refresh]
    assert titles(spec(), there) == [refresh]
    assert titles(None, there) == ["remove token tok from namespace kube-system in k1"]
    assert [*Rotation.conflicts({}, {}, {"t": ("a",)})] == []
    asked = OneCluster()
    step = next(each for each in Rotation.steps("t", spec(), None, context) if isinstance(each, Write))
    new = {"path": str(tokens["new"].path), "digest": tokens["new"].digest}
    rotation(SomeClusters(k1=asked), {}).run(replace(step, home=HOME, source=new), lambda _: None)
    assert asked.written == [("Secret", "kube-system", NAME)]


def used(name: str, kind: str = "Deployment", *, notified: bool = False, late: bool = True) -> Consumer:
    return Consumer(kind, "a", name, "k1", notified, late)


def planned(token: Token, found: Found | None) -> list[Any]:
    key = Key("bitfusion_token", "tok")
    home = Key("kubernetes_cluster", "k1")
    needs = {"token": ResolvedRef(key, None, token), "cluster": ResolvedRef(home, None, None)}
    context = PlanContext(Mark("s", "token_secret/t"), needs, facts=found and {"t": found})
    return [
        each for each in Rotation.steps("t", spec(), None, context) if isinstance(each, Refresh | Restart)
    ]


def test_the_plan_names_where_stale_copies_are_and_who_is_restarted(tokens):
    copies = tuple(Stray(f"n{i}", NAME, "7", ("ca.crt",)) for i in (0, *range(21)))
    found = Found(
        restart=True,
        token="id",
        stale={HOME: ("k1", copies)},
        consumers={HOME: (used("web"), used("told", notified=True), used("alone", "Pod"))},
    )
    refresh, restart = planned(tokens["new"], found)
    source = {"path": tokens["new"].path, "digest": tokens["new"].digest}
    where = f"{', '.join(f'n{i}' for i in range(20))} and 1 more"
    assert refresh == Refresh(
        what="token tok",
        cluster="k1",
        where=where,
        home=HOME,
        strays=copies,
        source=source,
        changes=(Change("copies in k1", "the token before", "as in token tok"),),
    )
    assert refresh.exclusive
    assert restart == Restart(
        consumer="Deployment/web",
        namespace="a",
        cluster="k1",
        home=HOME,
        token="id",
        changes=(Change("Deployment/web in a", "started with the token before", "restarted"),),
    )
    assert planned(tokens["new"], None) == []
    assert planned(tokens["new"], Found(restart=False, consumers=found.consumers)) == []


def ready(found: Found | None, mark: Mark | None = T) -> Any:
    kind = rotation(SomeClusters(), {})
    kind._found = {"t": found} if found else {}
    return kind.ready(spec(), State(mark=mark, cluster="k1", home=HOME))


def test_a_rotation_waits_for_the_workloads_that_it_restarts_and_says_what_it_left():
    web, pods = used("web"), tuple(used(f"p{i}", "Pod") for i in range(21))
    waits = ready(Found(restart=True, consumers={HOME: (*pods, web)}))
    assert (waits.status, waits.why) == (
        Ready.WAITING,
        "Deployment/web in a of k1 still has pods with the earlier token",
    )
    left = tuple(f"s{i}" for i in range(21))
    twenty = ", ".join(left[:20])
    told = ", ".join(f"Pod a/p{i} of k1" for i in range(20))
    until = "with the earlier token until they are restarted"
    for found, note in (
        (Found(restart=True), ""),
        (Found(restart=True, consumers={HOME: (used("web", late=False),)}), ""),
        (Found(restart=True, left=left), f"left as they are: {twenty} and 1 more"),
        (
            Found(restart=True, consumers={HOME: (*pods, used("web", late=False))}),
            f"{until}: {told} and 1 more",
        ),
        (
            Found(restart=False, left=("s",), consumers={HOME: (web,)}),
            f"left as they are: s; {until} (--restart): Deployment a/web of k1",
        ),
    ):
        assert (ready(found).status, ready(found).note) == (Ready.READY, note)
    assert ready(None) == ready(Found(restart=True, consumers={HOME: (web,)}), mark=None) == READY


@pytest.mark.parametrize("time", [NOW, None])
def test_a_stale_copy_is_replaced_only_in_the_version_that_was_read(tokens, time):
    there = OneCluster()
    there.time = time
    new = tokens["new"]
    step = Refresh(
        what="token tok",
        cluster="k1",
        where="a",
        home=HOME,
        strays=(Stray("a", NAME, "7", ("ca.crt",)),),
        source={"path": str(new.path), "digest": new.digest},
    )
    rotation(SomeClusters(k1=there), {}).run(step, lambda _: None)
    data = {"ca.crt": base64.b64encode(new.files["ca.crt"]).decode()}
    noted = {"resourceVersion": "7", "annotations": {WRITTEN: time.isoformat() if time else None}}
    assert there.written == [("v1", "Secret", "a", NAME, {"metadata": noted, "data": data})]


def test_a_workload_is_restarted_by_an_annotation_of_its_pods():
    there = OneCluster()
    step = Restart(consumer="StatefulSet/db", namespace="a", cluster="k1", home=HOME, token="id")
    rotation(SomeClusters(k1=there), {}).run(step, lambda _: None)
    body = {"spec": {"template": {"metadata": {"annotations": {"bfinfra.io/token": "id"}}}}}
    assert there.written == [("apps/v1", "StatefulSet", "a", "db", body)]


@pytest.mark.parametrize(
    ("used", "token", "what", "then"),
    [
        (("one", "two"), "onee", "no token_secret holds the token onee", "did you mean one?"),
        (("one", "two"), "x", "no token_secret holds the token x", "there are: one, two"),
        (("one", "two"), "", "the site has several tokens", "there are: one, two"),
        ((), "x", "no token_secret holds the token x", "write a token_secret"),
        ((), "", "the site puts no token into any cluster", "write a token_secret"),
    ],
)
def test_which_token_is_meant(used, token, what, then):
    resources = {Key("token_secret", name): spec("k1", name) for name in used}
    with pytest.raises(SiteError) as refused:
        about(Site("s", None, resources), token)
    (problem,) = cast("Iterator[Any]", refused.value.problems)
    assert (problem.what, problem.next) == (what, then)


@pytest.mark.parametrize("token", ["one", ""])
def test_a_rotation_is_of_a_token_and_of_each_secret_that_holds_it(token):
    resources = {Key("token_secret", name): spec("k1", "one") for name in ("a", "b")}
    more = {Key("token_secret", "c"): spec("k1", "two")} if token else {}
    chosen = {Key("bitfusion_token", "one"), *resources}
    assert about(Site("s", None, resources | more | {Key("namespace", "n"): None}), token) == chosen


def test_a_rotation_needs_the_whole_cluster_and_of_a_supervisor_its_namespace():
    def places(key: Key) -> Any:
        return Rotation.places("t", spec("k1", "tok", "a"), {"cluster": ResolvedRef(key, None, None)}, "dc")

    whole, one = Key("kubernetes_cluster", "k1"), Key("supervisor_namespace", "ns")
    assert places(whole) == {"namespaces": (Api(whole, "a"),), "everywhere": (Api(whole, ""),)}
    assert places(one) == {"namespaces": (Api(one, "ns"),), "everywhere": (Api(one, "ns"),)}
