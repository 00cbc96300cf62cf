"""An installation that upstream's `make deploy` left is taken over whole, and no plain pod is refused at any
instant; or nothing is written.
"""

from __future__ import annotations

import base64
import uuid

import pytest
from at_cluster import Site
from make_deploy import ADMISSION, make_deploy
from waiting import until

from bfinfra.backends import authority
from bfinfra.backends.kubernetes.cluster import ClusterClient
from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.engine import guard
from bfinfra.model.device_plugin import RELEASES
from bfinfra.model.errors import Denied, Unsafe
from bfinfra.model.refs import Key

pytestmark = pytest.mark.thorough

KEY = Key.parse("bitfusion_device_plugin/p")
NAMESPACE, TOKEN = Key.parse("namespace/bwki"), Key.parse("token_secret/t")
HOOKS = (
    ("ValidatingWebhookConfiguration", "validation.bitfusion.io-cfg"),
    ("MutatingWebhookConfiguration", "bwki-webhook-cfg"),
)
WRITES = ("create", "apply", "patch", "delete")


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def server_version():
    return "v1.27.3"


@pytest.fixture
def site(tmp_path, api):
    return Site(tmp_path, api)


def written(site, version, **more):
    form = RELEASES[version].form
    site.resources = {
        "namespace": {"bwki": {"cluster": "k"}},
        "token_secret": {"t": {"cluster": "k", "token": "tok", "form": form, "namespaces": ["kube-system"]}},
        "bitfusion_device_plugin": {"p": {"cluster": "k", "version": version, "token_secret": "t", **more}},
    }


def plain(cluster, space):
    """A pod that has nothing to do with GPUs."""
    spec = {"containers": [{"name": "c", "image": "x:1"}], "restartPolicy": "Never"}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p-{uuid.uuid4().hex}", "namespace": space},
            "spec": spec,
        }
    )


def each_write(monkeypatch, then):
    """`then` after each write of bfinfra's; what `then` writes itself doesn't count."""
    writing = [False]

    def watched(method):
        real = getattr(ClusterClient, method)

        def write(self, *args, **how):
            try:
                return real(self, *args, **how)
            finally:
                if not writing[0]:
                    writing[0] = True
                    try:
                        then()
                    finally:
                        writing[0] = False

        return write

    for method in WRITES:
        monkeypatch.setattr(ClusterClient, method, watched(method))


def taken_over(cluster, version):
    for kind, name in HOOKS:
        found = cluster.get(ADMISSION, kind, name)
        assert mark_of(found).address == str(KEY)
        assert len(authority.read(base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]))) == 1
    assert (
        cluster.get("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "bwki-webhook-deployment")[
            "roleRef"
        ]["name"]
        == "bwki-webhook-deployment"
    )
    daemons = cluster.get("apps/v1", "DaemonSet", "bitfusion-cli-device-plugin", "kube-system")
    assert daemons["spec"]["selector"]["matchLabels"] == {"app": "bitfusion-device-plugin", "tier": "node"}
    assert [each["name"] for each in daemons["spec"]["template"]["spec"]["volumes"]] == ["kubelet-socket"]
    until(lambda: len(cluster.list("v1", "Pod", "kube-system", "tier=node")) == 1)
    template = cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki")["spec"][
        "template"
    ]["spec"]
    assert template["serviceAccountName"] == "bwki-webhook-deployment"
    assert "2>&1" not in template["containers"][0]["args"]


@pytest.mark.thorough("0.4-Fail")
@pytest.mark.parametrize(
    ("version", "policy"),
    [("0.1", "Ignore"), ("0.2", "Ignore"), ("0.3", "Fail"), ("0.4", "Ignore"), ("0.4", "Fail")],
)
def test_it_is_taken_over_whole_and_a_plain_pod_can_be_made_after_each_write(
    site, cluster, space, monkeypatch, version, policy
):
    make_deploy(cluster, version)
    plain(cluster, space)
    written(site, version, failure_policy=policy)
    for key in (NAMESPACE, TOKEN):
        site.applied(adopt=frozenset({key}))
    assert any("did not make it" in problem.what for problem in site.plan().problems)
    with monkeypatch.context() as watching:
        each_write(watching, lambda: plain(cluster, space))
        site.applied(adopt=frozenset({KEY}))
        site.applied()
    taken_over(cluster, version)
    assert {cluster.get(ADMISSION, *each)["webhooks"][0]["failurePolicy"] for each in HOOKS} == {policy}
    assert site.plan().pending == ()


def test_it_can_die_after_each_write_and_no_plain_pod_is_refused_and_the_next_run_goes_on(
    site, cluster, space, monkeypatch
):
    make_deploy(cluster, "0.4")
    written(site, "0.4", failure_policy="Fail")
    for key in (NAMESPACE, TOKEN):
        site.applied(adopt=frozenset({key}))

    died = []

    def die():
        plain(cluster, space)
        raise Denied("the test ends it here")

    for how in ({"adopt": frozenset({KEY})}, {}):
        for _ in range(60):
            with monkeypatch.context() as watching:
                each_write(watching, die)
                ended = site.apply(**how).endings[KEY].ending
            plain(cluster, space)
            died.append(ended)
            if ended == "done":
                break
    assert died.count("failed") > 10
    site.applied()
    taken_over(cluster, "0.4")
    assert site.plan().pending == ()


def test_what_is_replaced_is_named_and_wants_an_allowance(site, cluster):
    make_deploy(cluster, "0.4")
    written(site, "0.4")
    for key in (NAMESPACE, TOKEN):
        site.applied(adopt=frozenset({key}))
    plan = site.plan(adopt=frozenset({KEY}))
    changed = {change.field for item in plan.items if item.key == KEY for change in item.changes}
    assert {
        "ClusterRoleBinding/bwki-webhook-deployment.roleRef",
        "DaemonSet/bitfusion-cli-device-plugin.spec.selector",
    } <= changed
    with pytest.raises(Unsafe) as refused:
        guard.check(plan, guard.Allow())
    assert "ClusterRoleBinding/bwki-webhook-deployment, DaemonSet/bitfusion-cli-device-plugin" in str(
        refused.value
    )
    assert "--allow-delete bitfusion_device_plugin/p" in str(refused.value)


def test_what_can_not_be_taken_over_is_named_before_anything_is_written(site, cluster, space):
    make_deploy(cluster, "0.4")
    written(site, "0.4", namespace=space)
    validating = cluster.get(ADMISSION, *HOOKS[0])
    theirs = {**validating["webhooks"][0], "name": "theirs.example.com"}
    cluster.patch(ADMISSION, *HOOKS[0], {"webhooks": [validating["webhooks"][0], theirs]})
    (problem,) = [
        each for each in site.plan(adopt=frozenset({KEY})).problems if "can't be taken over" in each.what
    ]
    assert "validation.bitfusion.io-cfg has a webhook theirs.example.com" in problem.why
    assert "bwki-webhook-cfg asks a Service in bwki: write namespace: bwki" in problem.why
