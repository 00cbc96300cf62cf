"""The device plug-in: what is made of a site, in which order, what is drift, and how certificates are made
anew.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from at_cluster import Site
from cryptography import x509
from kinds.unmanaged import Entry, Look, kube_object
from kube_api import somebody_patches
from pydantic import ValidationError
from rights.given import other

from bfinfra.backends import authority
from bfinfra.kinds.cluster.bitfusion_device_plugin import decide, manifests
from bfinfra.kinds.cluster.bitfusion_device_plugin.check import check
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import Values, render
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import NamespaceFacts
from bfinfra.kinds.cluster.token_secret import spec as token_secret
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.device_plugin import RELEASES
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.plan import step_data
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

ADDRESS = "bitfusion_device_plugin/p"
ADMISSION = "admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = (
    ("MutatingWebhookConfiguration", "bwki-webhook-cfg"),
    ("ValidatingWebhookConfiguration", "validation.bitfusion.io-cfg"),
)


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api, cluster):
    made = Site(tmp_path, api)
    made.resources = {
        "namespace": {"bwki": {"cluster": "k"}, "train": {"cluster": "k", "namespace": "training"}},
        "token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": ["kube-system"]}},
        "bitfusion_device_plugin": {
            "p": {
                "cluster": "k",
                "token_secret": "t",
                "total_gpu_memory": "16GB",
                "quotas": [{"namespace": "train", "gpus": 1.5}],
            }
        },
    }
    return made


def plugin(site, **changes):
    site.resources["bitfusion_device_plugin"]["p"] |= changes


def fields(site):
    return {change.field for change in site.item(ADDRESS).changes}


def hooks(cluster):
    return {kind: cluster.get(ADMISSION, kind, name)["webhooks"][0] for kind, name in (MUTATING, VALIDATING)}


def certificates(cluster, name="bwki-webhook-certs", key="cert.pem"):
    return authority.read(base64.b64decode(cluster.get("v1", "Secret", name, "bwki")["data"][key]))


def test_all_is_made_with_the_webhook_asked_last_and_the_webhook_is_asked_no_more_before_anything_goes(
    site, cluster, tmp_path
):
    item = site.item(ADDRESS)
    assert [type(step).__name__ for step in item.steps] == [
        "WriteRecord",
        "Authorize",
        "Certify",
        "Write",
        "RollOut",
        "Ask",
        "Commit",
    ]
    outcome = site.applied()
    assert outcome.endings[Key.parse(ADDRESS)].note == "1 nodes advertise bitfusion.io/gpu, 1000 each"
    daemons = cluster.get("apps/v1", "DaemonSet", "bitfusion-cli-device-plugin", "kube-system")
    assert (
        daemons["spec"]["template"]["spec"]["containers"][0]["image"]
        == "docker.io/bitfusiondeviceplugin/bitfusion-device-plugin:0.4"
    )
    assert cluster.get("v1", "ResourceQuota", "bitfusion-quota", "training")["spec"]["hard"] == {
        "requests.bitfusion.io/gpu": "150"
    }
    env = cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki")["spec"]["template"][
        "spec"
    ]["containers"][0]["env"]
    assert env == [{"name": "TOTAL_GPU_MEMORY", "value": "16000"}]
    assert site.apply().writes == 0
    (gone,) = site.item(ADDRESS, destroy=True).steps
    assert [place.kind for place in gone.places[:4]] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "DaemonSet",
        "Deployment",
    ]
    assert gone.places[-1].name == "bfinfra-device-plugin-p"
    its_certificate_is_for_the_service_and_signed_by_what_the_api_server_trusts(cluster)
    text = json.dumps([step_data(step) for step in (*item.steps, gone)])
    no_key_stands_in(
        cluster, text, "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file())
    )


def test_images_that_the_site_builds_are_built_first_and_run_under_their_names(site, cluster, tmp_path):
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone/Dockerfile").write_text("FROM scratch\n")
    image = {"source": "clone", "build": "never"}
    site.resources["container_image"] = {
        "w": {"image": "10.1.0.3/team/webhook:1", **image},
        "c": {"image": "10.1.0.3/team/client:1", **image},
    }
    plugin(site, images={"repository": "10.1.0.3/mirror", "built": {"webhook": "w", "client": "c"}})
    site.applied()
    running = {
        name: cluster.get("apps/v1", kind, name, space)["spec"]["template"]["spec"]["containers"][0]["image"]
        for kind, name, space in (
            ("DaemonSet", manifests.PLUGIN, "kube-system"),
            ("Deployment", manifests.WEBHOOK, "bwki"),
        )
    }
    assert running == {
        manifests.PLUGIN: "10.1.0.3/mirror/bitfusion-device-plugin:0.4",
        manifests.WEBHOOK: "10.1.0.3/team/webhook:1",
    }
    assert (
        "10.1.0.3/team/client:1"
        in cluster.get("v1", "ConfigMap", manifests.SIDECAR, "bwki")["data"]["sidecarconfig.yaml"]
    )
    site.resources["container_image"]["w"]["image"] = "10.1.0.3/team/webhook:2"
    assert {change.field for change in site.item(ADDRESS).changes} == {
        "Deployment/bitfusion-webhook-deployment"
    }
    del site.resources["container_image"]["c"]
    with pytest.raises(Exception, match="container_image"):
        site.item(ADDRESS)


def its_certificate_is_for_the_service_and_signed_by_what_the_api_server_trusts(cluster):
    secret = cluster.get("v1", "Secret", "bwki-webhook-certs", "bwki")["data"]
    leaf, key = base64.b64decode(secret["cert.pem"]), base64.b64decode(secret["key.pem"])
    bundles = {hook["clientConfig"]["caBundle"] for hook in hooks(cluster).values()}
    (bundle,) = (base64.b64decode(each) for each in bundles)
    assert authority.signer(leaf, bundle) == authority.read(bundle)[0].fingerprint
    assert authority.belongs(leaf, key)
    assert authority.read(leaf)[0].names == (
        "bwki-webhook-svc",
        "bwki-webhook-svc.bwki",
        "bwki-webhook-svc.bwki.svc",
    )
    assert (
        x509.load_pem_x509_certificate(bundle)
        .extensions.get_extension_for_class(x509.BasicConstraints)
        .value.path_length
        == 0
    )


def no_key_stands_in(cluster, *texts):
    keys = [
        cluster.get("v1", "Secret", name, "bwki")["data"][key]
        for name, key in (("bwki-webhook-certs", "key.pem"), ("bwki-webhook-ca", "tls.key"))
    ]
    for text in texts:
        assert text
        assert "PRIVATE KEY" not in text
        assert not any(key in text for key in keys)


CHANGED = {
    "Service/bwki-webhook-svc.spec.selector.app": (
        "bwki/services/bwki-webhook-svc",
        {"spec": {"selector": {"app": "x"}}},
    ),
    "ConfigMap/bwki-webhook-configmap.data.sidecarconfig.yaml": (
        "bwki/configmaps/bwki-webhook-configmap",
        {"data": {"sidecarconfig.yaml": "x"}},
    ),
    "ResourceQuota/bitfusion-quota in training.spec.hard.requests.bitfusion.io/gpu": (
        "training/resourcequotas/bitfusion-quota",
        {"spec": {"hard": {"requests.bitfusion.io/gpu": "900"}}},
    ),
}


def test_what_somebody_changed_is_drift_and_is_put_back(site, cluster):
    site.applied()
    for field, (path, body) in CHANGED.items():
        somebody_patches(cluster, f"namespaces/{path}", body)
        assert fields(site) == {field}
        site.applied()
    assert site.plan().pending == ()


def test_what_somebody_removed_is_made_again(site, cluster):
    site.applied()
    for kind, name in (MUTATING, VALIDATING):
        cluster.delete(ADMISSION, kind, name)
    cluster.delete("v1", "Secret", "bwki-webhook-ca", "bwki")
    assert {"authority", "certificate"} <= fields(site)
    site.applied()
    assert authority.signer(
        base64.b64decode(cluster.get("v1", "Secret", "bwki-webhook-certs", "bwki")["data"]["cert.pem"]),
        base64.b64decode(hooks(cluster)[MUTATING[0]]["clientConfig"]["caBundle"]),
    )
    assert site.plan().pending == ()


def test_a_certificate_that_ends_soon_is_made_anew_by_the_same_authority_and_the_webhook_starts_with_it(
    site, cluster
):
    site.applied()
    before, own = certificates(cluster), certificates(cluster, "bwki-webhook-ca", "tls.crt")
    plugin(site, certificates={"days": 400, "renew_before": 370})
    assert [type(step).__name__ for step in site.item(ADDRESS).steps] == ["Certify", "RollOut", "Commit"]
    site.applied()
    after = certificates(cluster)
    assert after != before
    assert certificates(cluster, "bwki-webhook-ca", "tls.crt") == own
    note = cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki")["spec"]["template"][
        "metadata"
    ]["annotations"][manifests.NOTE]
    assert note == after[0].fingerprint
    assert site.plan().pending == ()


def test_a_new_authority_is_trusted_beside_the_old_one_before_anything_is_signed_by_it(site, cluster):
    site.applied()
    (old,) = certificates(cluster, "bwki-webhook-ca", "tls.crt")
    plugin(site, certificates={"days": 3655, "authority_days": 3660, "renew_before": 3654})
    assert [type(step).__name__ for step in site.item(ADDRESS).steps] == [
        "Authorize",
        "Certify",
        "RollOut",
        "Ask",
        "Commit",
    ]
    order: list[str] = []
    site.apply(
        on_event=lambda event: (
            order.append(event.title)
            if type(event).__name__ == "StepBegun" and str(event.key) == ADDRESS
            else None
        )
    )
    words = [
        next(
            word for word in ("authority", "let the API", "certificate", "roll out", "note") if word in title
        )
        for title in order
    ]
    assert words == ["authority", "let the API", "certificate", "roll out", "note"]
    bundle = authority.read(base64.b64decode(hooks(cluster)[VALIDATING[0]]["clientConfig"]["caBundle"]))
    assert len(bundle) == 2
    assert bundle[1] == old
    assert site.plan().pending == ()


def test_a_release_changes_what_it_is_made_of(site, cluster):
    site.applied()
    site.resources["token_secret"]["t"]["form"] = "single"
    plugin(site, version="0.1")
    site.applied()
    assert cluster.get("v1", "ConfigMap", "bwki-bitfusion-client-configmap", "bwki") is None
    assert (
        "bitfusion-usr-bin"
        in cluster.get("v1", "ConfigMap", "bwki-webhook-configmap", "bwki")["data"]["sidecarconfig.yaml"]
    )
    rules = cluster.get("rbac.authorization.k8s.io/v1", "ClusterRole", "bwki-webhook-deployment")["rules"]
    assert rules[0]["resourceNames"] == ["bitfusion-secret"]
    assert site.plan().pending == ()


def test_another_namespace_for_the_webhook_leaves_nothing_in_the_old_one(site, cluster, space):
    site.applied()
    plugin(site, namespace=space)
    site.applied()
    assert cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki") is None
    assert cluster.list("v1", "Secret", "bwki") == []
    assert [each["metadata"]["name"] for each in cluster.list("v1", "ConfigMap", "bwki")] == [
        "kube-root-ca.crt"
    ]
    assert hooks(cluster)[MUTATING[0]]["clientConfig"]["service"]["namespace"] == space
    assert site.plan().pending == ()


def test_what_leaves_the_file_is_deleted_and_its_namespace_after_it(site, cluster):
    site.applied()
    site.resources = {}
    site.applied()
    assert cluster.get(ADMISSION, *MUTATING) is None
    assert cluster.get("rbac.authorization.k8s.io/v1", "ClusterRole", "bwki-webhook-deployment") is None
    assert cluster.get("apps/v1", "DaemonSet", "bitfusion-cli-device-plugin", "kube-system") is None


def test_a_strangers_object_of_the_name_is_not_touched_and_a_record_leads_to_nothing_of_others(site, cluster):
    theirs = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "bwki-webhook-deployment"},
        "rules": [],
    }
    cluster.create(theirs)
    assert any("did not make it" in problem.what for problem in site.plan().problems)
    cluster.delete("rbac.authorization.k8s.io/v1", "ClusterRole", "bwki-webhook-deployment")
    site.applied()
    cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "bwki"}}
    )
    record = json.dumps(
        [["v1", "ConfigMap", "bwki", "theirs"], ["v1", "ConfigMap", "bwki", "bwki-webhook-configmap"]]
    )
    somebody_patches(
        cluster, "namespaces/bwki/configmaps/bfinfra-device-plugin-p", {"data": {"places": record}}
    )
    site.applied()
    assert cluster.get("v1", "ConfigMap", "theirs", "bwki")
    cluster.delete("v1", "ConfigMap", "theirs", "bwki")


SPEC = {"cluster": "k", "version": "0.4"}
FACTS = NamespaceFacts(
    datetime.now(UTC), {"kube-system": {"kubernetes.io/metadata.name": "kube-system"}, "bwki": {}}
)


def context(**needs):
    """What a decision sees: the cluster, and other resources' specs by field."""
    keys = {"token_secret": "token_secret/t", "registry_credential": "registry_credential/r"}
    found = {
        field: ResolvedRef(Key.parse(keys.get(field, f"namespace/{field}")), spec, None)
        for field, spec in needs.items()
    }
    return PlanContext(
        Mark("s", ADDRESS),
        {"cluster": ResolvedRef(Key("kubernetes_cluster", "k"), None, None), **found},
        {},
        {"p": FACTS},
    )


def token(**changes):
    return token_secret.Spec.model_validate(
        {"cluster": "k", "token": "tok", "namespaces": ["kube-system"], **changes}
    )


@pytest.mark.parametrize(
    ("spec", "needs", "labels", "words"),
    [
        ({}, {}, {"bwki": None}, "there is no namespace bwki"),
        (
            {"plugin_namespace": "x"},
            {},
            {"x": {"pod-security.kubernetes.io/enforce": "baseline"}},
            "Pod Security refuses the plug-in's pods in x",
        ),
        (
            {"token_secret": "t"},
            {"token_secret": token(namespaces=["default"])},
            {},
            "puts no token into kube-system",
        ),
        ({"token_secret": "t"}, {"token_secret": token(form="single")}, {}, "has the form single"),
        (
            {"failure_policy": "Fail"},
            {},
            {"kube-system": {}},
            "the system's pods would be shown to the webhook",
        ),
        (
            {},
            {},
            {"bwki": {"pod-security.kubernetes.io/enforce": "restricted"}},
            "Pod Security refuses the webhook's pods in bwki",
        ),
        ({"namespaces": ["a"]}, {}, {"a": None}, "there is no namespace a"),
        ({"namespaces": ["a"]}, {}, {"a": {}}, "the namespace a can't be selected"),
        (
            {"namespaces": ["kube-system", "bwki"]},
            {},
            {"bwki": {"kubernetes.io/metadata.name": "bwki"}},
            "no pod would be shown to the webhook",
        ),
    ],
)
def test_what_can_not_work_is_refused_before_anything_is_written(spec, needs, labels, words):
    with pytest.raises(Refusal, match=words):
        check(
            Spec.model_validate(SPEC | spec),
            context(**needs),
            replace(FACTS, labels={**FACTS.labels, **labels}),
        )


def test_namespaces_are_chosen_by_a_label_that_old_clusters_do_not_set(site, cluster):
    plugin(site, namespaces=["default", "train"])
    with pytest.raises(
        BfinfraError, match=r"kubectl label namespace default kubernetes\.io/metadata\.name=default"
    ):
        site.apply()
    assert cluster.get("v1", "Namespace", "bwki") is None
    somebody_patches(
        cluster, "namespaces/default", {"metadata": {"labels": {"kubernetes.io/metadata.name": "default"}}}
    )
    site.applied()
    for space, wanted in (("training", "injected"), ("default", "injected"), ("kube-public", "")):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "namespace": space,
                "annotations": {
                    "auto-management/bitfusion": "all",
                    "bitfusion-client/os": "ubuntu20",
                    "bitfusion-client/version": "450",
                },
            },
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "x:1",
                        "command": ["a"],
                        "resources": {"limits": {"bitfusion.io/gpu-amount": "1"}},
                    }
                ]
            },
        }
        assert cluster.create(pod)["metadata"]["annotations"].get("auto-management/status", "") == wanted
        cluster.delete("v1", "Pod", "p", space)


def test_namespaces_that_are_never_shown_to_the_webhook_are_reported():
    spec = Spec.model_validate(SPEC | {"namespaces": ["a", "kube-system"]})
    assert [(field, problem.what) for field, problem in spec.warnings()] == [
        ("namespaces.1", "pods in kube-system are not shown to the webhook")
    ]


def test_a_cluster_has_one_plug_in():
    spec = Spec.model_validate(SPEC)
    with pytest.raises(Refusal, match="q is in k already"):
        check(spec, replace(context(), siblings={"q": (spec, None)}), FACTS)


@pytest.mark.parametrize(
    "fields",
    [
        {"clients": [{"version": "1", "os": "x", "folder": "f"}], "version": "0.1"},
        {"quotas": [{"namespace": "a", "gpus": 1}, {"namespace": "a", "gpus": 2}]},
        {"certificates": {"days": 20}},
        {"version": "0.5"},
        {"quotas": [{"namespace": "a", "gpus": 0}]},
    ],
)
def test_what_contradicts_itself_is_no_spec(fields):
    with pytest.raises(ValidationError):
        Spec.model_validate(SPEC | fields)


@pytest.mark.parametrize("version", RELEASES)
def test_no_pod_of_the_system_or_of_its_own_is_ever_shown_to_the_webhook(version):
    spec = Spec.model_validate(SPEC | {"version": version, "namespaces": ["a", "kube-system"]})
    for wanted, operator, values in (
        (spec, "In", ["a"]),
        (
            spec.model_copy(update={"namespaces": ()}),
            "NotIn",
            ["kube-system", "kube-public", "kube-node-lease", "bwki"],
        ),
    ):
        objects = [
            each.manifest
            for each in render(
                wanted, Values("bwki", "kube-system", {"a": "a", "kube-system": "kube-system"})
            )
        ]
        for each in objects[-2:]:
            (hook,) = each["webhooks"]
            (expression,) = hook["namespaceSelector"]["matchExpressions"]
            assert (
                each["apiVersion"],
                expression["operator"],
                expression["values"],
                hook["failurePolicy"],
            ) == (ADMISSION, operator, values, "Ignore")
    assert [each["webhooks"][0]["admissionReviewVersions"] for each in objects[-2:]] == [["v1"], ["v1beta1"]]


@pytest.mark.parametrize("version", RELEASES)
def test_a_release_s_objects_are_its_own(version):
    release, spec = (
        RELEASES[version],
        Spec.model_validate(
            SPEC
            | {
                "version": version,
                "images": {"repository": "mirror.example.com/bf", "client": "mirror.example.com/c@sha256:0"},
            }
        ),
    )
    found = {
        each.manifest["metadata"]["name"]: each.manifest
        for each in render(spec, Values("bwki", "kube-system"))
    }
    sidecar = yaml.safe_load(found["bwki-webhook-configmap"]["data"]["sidecarconfig.yaml"])
    assert {each["secret"]["secretName"] for each in sidecar["volumes"] if "secret" in each} == set(
        token_secret.FORMS[release.form]
    )
    assert sidecar["initContainers"][0]["image"] == "mirror.example.com/c@sha256:0"
    assert (
        found["bitfusion-webhook-deployment"]["spec"]["template"]["spec"]["containers"][0]["image"]
        == f"mirror.example.com/bf/bitfusion-webhook:{version}"
    )
    assert ("bwki-bitfusion-client-configmap" in found) == bool(release.clients)
    assert all(
        rule["verbs"] in (["get"], ["create"], ["list"])
        for rule in found["bwki-webhook-deployment"].get("rules", [])
    )


def test_a_certificate_is_judged_by_the_clock_it_is_given():
    spec = Spec.model_validate(SPEC)
    ca, key = authority.make("a", 3650)
    leaf, own = authority.issue(ca, key, manifests.host_names("bwki"), 365)
    assert authority.belongs(leaf, own)
    assert not authority.belongs(leaf, key)
    with pytest.raises(ValueError, match="not the one"):
        authority.issue(ca, own, ("x",), 1)
    assert authority.read(b"nonsense") == ()
    assert authority.signer(leaf, authority.make("b", 1)[0]) == ""
    late = replace(FACTS, now=datetime.now(UTC) + timedelta(days=340))
    names = [
        type(step).__name__ for step in decide.decide("p", spec, None, replace(context(), facts={"p": late}))
    ]
    assert names[:3] == ["WriteRecord", "Authorize", "Certify"]


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return kube_object(
        other(sandbox),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"metadata": {"name": name}, "rules": []},
    )


UNMANAGED = Entry(
    at="bwki-webhook-deployment",
    plant=unmanaged,
    inside="its objects hold nothing; its namespaces are resources of their own",
)
