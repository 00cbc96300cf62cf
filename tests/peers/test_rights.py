"""The rights that bfinfra prints, given by kubectl on a real kube-apiserver and by govc on the sandbox:
enough, and one fewer is refused and named.
"""

from __future__ import annotations

import json
import queue
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import grants
import httpx2
import pytest
import yaml
from heard import following
from kinds.lifecycle import apply, endings, made
from peers.found import Peers, run
from peers.site_files import RUN_CONTEXT, SiteFile, all_are, kubernetes_site
from rights.given import ACCOUNT, Site, named, world

import bfinfra
from bfinfra.app import privileges
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.model.rights import Rights, Use
from bfinfra.render.privileges import govc, manifest

pytestmark = pytest.mark.peers
REAL = Key("kubernetes_cluster", "real")
Give = Callable[[Rights], str]
AT_ONCE = 8  # seconds within which a change must be reported
LABEL = ("label", "--overwrite", "namespace")


@pytest.fixture
def site(tmp_path: Path) -> SiteFile:
    return kubernetes_site(tmp_path, uuid.uuid4().hex[:8])


@pytest.fixture
def give(peers: Peers, site: SiteFile) -> Iterator[Give]:
    """Gives rights to a service account of the test's own, whose token the site then uses."""
    name = site.given["site"]
    peers.kubectl("create", "serviceaccount", name, "-n", "default")
    config = yaml.safe_load(peers.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": peers.kubectl("create", "token", name, "-n", "default").strip()}
    site.put("admin.kubeconfig", json.dumps(config))
    yield lambda rights: str(
        peers.kubectl(
            "apply", "-f", "-", given=manifest(rights, f"system:serviceaccount:default:{name}", REAL)
        )
    )
    peers.kubectl("delete", f"serviceaccount/{name}", "-n", "default")
    peers.kubectl(
        "delete", f"clusterrole/bfinfra-{name}", f"clusterrolebinding/bfinfra-{name}", "--ignore-not-found"
    )
    spaces = [space["namespace"] for space in site.given["namespace"].values()]
    peers.kubectl("delete", "namespace", *spaces, "--ignore-not-found", "--wait=false")


def live(site: SiteFile) -> None:
    """Make, change, and delete everything."""
    all_are(site.apply(), "done", "kept")
    site.given["namespace"]["training"]["labels"] = {"team": "b"}
    site.given["registry_credential"]["pull"]["username"] = "team-b"
    all_are(site.apply(), "done", "kept")
    if hidden := [
        what
        for item in bfinfra.plan(site.load(), destroy=True, context=RUN_CONTEXT).items
        for what in item.contents
        if "can't be read" in what
    ]:
        raise BfinfraError(*hidden)
    all_are(site.apply(destroy=True), "done", "kept")


def test_what_is_printed_is_enough_on_a_real_server(site: SiteFile, give: Give) -> None:
    give(privileges.privileges(site.load()))
    live(site)


def test_a_plan_and_a_drift_read_everything_as_a_user_who_may_only_get_and_list(
    site: SiteFile, give: Give
) -> None:
    """kube-apiserver itself refuses whatever would write."""
    give(privileges.privileges(site.load()))
    all_are(site.apply(), "done", "kept")
    looking = privileges.privileges(site.load(), [Use.PLAN])
    assert {verb.verb for verbs in looking.apis.values() for verb in verbs} <= {"get", "list"}
    give(looking)
    planned, checked = site.plan(), bfinfra.drift(site.load(), context=RUN_CONTEXT)
    assert (planned.pending, planned.problems, dict(planned.unreadable)) == ((), (), {})
    assert (checked.found, checked.blind) == ((), False)
    site.given["namespace"]["training"]["labels"] = {"team": "b"}
    assert site.plan().pending
    with pytest.raises((BfinfraError, AssertionError), match="patch"):
        all_are(site.apply(), "done", "kept")
    give(privileges.privileges(site.load()))
    all_are(site.apply(destroy=True), "done", "kept")


def test_a_watch_follows_everything_with_what_is_printed_for_it(
    peers: Peers, site: SiteFile, give: Give
) -> None:
    give(privileges.privileges(site.load(), [Use.PLAN, Use.APPLY, Use.DESTROY]))
    all_are(site.apply(), "done", "kept")
    space = site.given["namespace"]["training"]["namespace"]

    def followed(*uses: Use) -> bool:
        """Whether a change is reported at once; the interval never comes."""
        rights = privileges.privileges(site.load(), uses)
        give(rights)
        assert {verb.verb for verbs in rights.apis.values() for verb in verbs} <= {"get", "list", "watch"}
        with following(site.load(), RUN_CONTEXT) as heard:
            assert heard.next().report.found == ()
            peers.kubectl(*LABEL, space, "team=x")
            try:
                return [each.field for each in heard.next(AT_ONCE).report.found] == ["labels.team"]
            except queue.Empty:
                return False
            finally:
                peers.kubectl(*LABEL, space, "team=a")

    assert followed(Use.WATCH)
    assert not followed(Use.PLAN)
    give(privileges.privileges(site.load()))
    all_are(site.apply(destroy=True), "done", "kept")


@pytest.mark.parametrize(
    "name",
    [
        "create namespaces",
        "list namespaces",
        "patch namespaces",
        "delete namespaces",
        "list secrets",
        "create secrets",
        "patch secrets",
        "delete secrets",
        "list jobs.batch",
        "create jobs.batch",
        "create pods",
        "create configmaps",
        "patch configmaps",
        "delete configmaps",
        "list services",
        "list cronjobs.batch",
    ],
)
def test_one_fewer_is_refused_and_named_on_a_real_server(name: str, site: SiteFile, give: Give) -> None:
    rights = privileges.privileges(site.load())
    give(
        replace(
            rights,
            apis={
                api: tuple(v for v in verbs if f"{v.verb} {v.resource}" != name)
                for api, verbs in rights.apis.items()
            },
        )
    )
    with pytest.raises((BfinfraError, AssertionError)) as refused:
        live(site)
    assert named(name) in str(refused.value)


def test_govcs_commands_give_what_an_apply_needs(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    with world(tmp_path / "world") as sandbox:
        site = Site.of("bitfusion_server", tmp_path / "site")
        host, port = sandbox.lookup("vc.small.test", 443) or ("", 0)
        env = {
            "GOVC_URL": f"https://{host}:{port}/sdk",
            "GOVC_USERNAME": "admin@small.test",
            "GOVC_PASSWORD": sandbox.env["VCENTER_PASSWORD"],
            "GOVC_INSECURE": "1",
            "GOVC_PERSIST_SESSION": "false",
        }
        env["PATH"] = f"{peers.bin}:/usr/bin:/bin"
        for line in govc(site.rights(sandbox, *Use), ACCOUNT).splitlines():
            run(["sh", "-c", line], env)
        for destroy in (False, True):
            outcome = apply(site.path(), sandbox, destroy=destroy)
            assert made(outcome), endings(outcome)


@pytest.mark.parametrize("table", grants.TABLE, ids=lambda each: each.__name__)
def test_a_real_server_answers_accounts_that_give_rights_as_the_sandbox_does(
    table: Any, peers: Peers
) -> None:
    """tests/sandbox/kubernetes/test_grants.py is the other half."""
    name = f"grants-{uuid.uuid4().hex[:8]}"
    peers.kubectl("create", "serviceaccount", name, "-n", "default")
    own, given = f"of-{name}", iter(range(100))
    peers.kubectl(
        "create", "clusterrolebinding", own, f"--clusterrole={own}", f"--serviceaccount=default:{name}"
    )
    cluster = yaml.safe_load(peers.kubeconfig.read_text())["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
    token = peers.kubectl("create", "token", name, "-n", "default").strip()
    try:
        with httpx2.Client(
            base_url=cluster["server"],
            verify=trust,
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
        ) as account:

            def call(method: str, path: str, body: Any) -> tuple[int, str]:
                kind = {
                    "content-type": "application/apply-patch+yaml"
                    if method == "PATCH"
                    else "application/json"
                }
                found = account.request(
                    method,
                    path,
                    json=body,
                    params={"fieldManager": "t"} if method == "PATCH" else None,
                    headers=kind,
                )
                return found.status_code, found.json().get("message", "") if "json" in found.headers[
                    "content-type"
                ] else found.text

            def give(rules: list[Mapping[str, Any]]) -> None:
                """Its authorizer learns of it a little later: a rule of this time only says when."""
                now = {"apiGroups": ["example.test"], "resources": [f"round-{next(given)}"], "verbs": ["get"]}
                role = {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": own},
                    "rules": [*rules, now],
                }
                peers.kubectl("apply", "-f", "-", given=json.dumps(role))
                asked = {
                    "spec": {
                        "resourceAttributes": {
                            "verb": "get",
                            "group": "example.test",
                            "resource": now["resources"][0],
                        }
                    }
                }
                while not account.post(
                    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=asked
                ).json()["status"]["allowed"]:
                    continue

            table(call, give, name)
    finally:
        peers.kubectl("delete", f"serviceaccount/{name}", "-n", "default")
        peers.kubectl(
            "delete",
            f"clusterrole/{own}",
            f"clusterrolebinding/{own}",
            f"clusterrole/{name}",
            f"clusterrolebinding/{name}",
            "--ignore-not-found",
        )
