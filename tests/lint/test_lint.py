"""The linter on the document's samples, and on one thing wrong at a time."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from bfinfra.cli import main
from bfinfra.lint import Asked, lint

SAMPLES = Path(__file__).parent / "samples"
GOOD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "annotations": {
            "auto-management/bitfusion": "all",
            "bitfusion-client/os": "ubuntu20",
            "bitfusion-client/version": "450",
        },
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "i",
                "env": [{"name": "A", "value": "b"}],
                "command": ["python train.py"],
                "resources": {"limits": {"bitfusion.io/gpu-amount": 1, "bitfusion.io/gpu-percent": 50}},
            }
        ]
    },
}


def messages(pod, *, version="0.4", memory=0):
    """Level and words of each remark."""
    text = pod if isinstance(pod, str) else yaml.safe_dump(pod, sort_keys=False)
    return [
        f"{each.level}: {each.problem.what}" for each in lint(Path("p.yaml"), text, Asked(version, memory))
    ]


def changed(*path, to):
    """The good pod with one thing changed; None takes it out."""
    pod = json.loads(json.dumps(GOOD))
    place = pod
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return pod


MAIN = ("spec", "containers", 0)
NOTES = ("metadata", "annotations")
LIMITS = (*MAIN, "resources", "limits")
WEB = {"name": "web", "image": "w"}


def test_the_documents_sample_is_mis_indented_and_the_place_is_reported():
    (remark,) = lint(Path("pod.yaml"), (SAMPLES / "document-pod.yaml").read_text(), Asked("0.1"))
    assert str(remark.problem.where) == "pod.yaml:25:5"
    assert remark.problem.what == "volumes is indented with 4 blanks, as the items of containers"
    assert "with 2 blanks" in remark.problem.next


def test_the_documents_sample_rightly_indented_is_one_of_release_0_1():
    text = (SAMPLES / "document-pod-indented.yaml").read_text()
    assert messages(text, version="0.1") == []
    assert "error: release 0.4 doesn't know bitfusion.io/gpu-num" in messages(text)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("release-*.yaml")), ids=lambda path: path.stem)
def test_the_samples_of_the_release_have_no_error(sample):
    assert not [each for each in messages(sample.read_text()) if each.startswith("error")]


def test_a_good_pod_is_good():
    assert messages(GOOD) == []


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        ((*NOTES, "auto-management/bitfusion"), None, "the annotation auto-management/bitfusion is missing"),
        (
            (*NOTES, "auto-management/bitfusion"),
            "sure",
            "the annotation auto-management/bitfusion is 'sure', which does not enable it",
        ),
        (
            (*NOTES, "auto-management/status"),
            "injected",
            "the annotation auto-management/status says that the webhook changed the pod already",
        ),
        ((*NOTES, "bitfusion-client/os"), None, "the annotation bitfusion-client/os is missing"),
        ((*NOTES, "bitfusion-client/version"), "999", "has no client 999 for ubuntu20"),
        ((*NOTES, "bitfusion-client/versoin"), "450", "doesn't know the annotation bitfusion-client/versoin"),
        (
            (*NOTES, "bitfusion-client/filter"),
            "server.dirver-version=1",
            "server.dirver-version is not a documented filter",
        ),
        ((*NOTES, "bitfusion-client/filter"), "device.name=", "the filter device.name= has no value"),
        ((*NOTES, "prometheus.io/scrape"), "yes please", "the annotation prometheus.io/scrape is lost"),
        (("metadata", "namespace"), "kube-system", "the webhook skips pods in kube-system"),
        ((*LIMITS, "bitfusion.io/gpu"), 50, "the webhook itself requests bitfusion.io/gpu"),
        ((*LIMITS, "bitfusion.io/gpu-num"), 1, "release 0.4 doesn't know bitfusion.io/gpu-num"),
        ((*LIMITS, "bitfusion.io/gpu-amount"), 0, "bitfusion.io/gpu-amount is 0"),
        ((*LIMITS, "bitfusion.io/gpu-amount"), "1500m", "bitfusion.io/gpu-amount is 1500m"),
        ((*LIMITS, "bitfusion.io/gpu-amount"), None, "requests a share, and no GPU"),
        ((*LIMITS, "bitfusion.io/gpu-percent"), 101, "bitfusion.io/gpu-percent is 101"),
        (
            (*MAIN, "resources"),
            {"requests": {"bitfusion.io/gpu-amount": 1}},
            "bitfusion.io/gpu-amount has no limit",
        ),
        (
            (*MAIN, "resources", "requests"),
            {"bitfusion.io/gpu-amount": 2},
            "request and limit of bitfusion.io/gpu-amount differ",
        ),
        ((*MAIN, "command"), None, "the container main has no command"),
        ((*MAIN, "command"), ["python", "train.py"], "the command has several elements"),
        ((*MAIN, "command"), ["/bin/sh", "-c", "python train.py"], "the command begins with /bin/sh"),
        (
            (*MAIN, "command"),
            ["bitfusion run -n 2 -p 0.5 python"],
            "`bitfusion run -n 2` doesn't agree with bitfusion.io/gpu-amount: 1",
        ),
        (
            (*MAIN, "command"),
            ["bitfusion run -n 1 -p 0.4 python"],
            "`bitfusion run -p 0.4` doesn't agree with bitfusion.io/gpu-percent: 50",
        ),
        ((*MAIN, "command"), ["bitfusion run -p 0.5 python"], "`bitfusion run` has no number of GPUs"),
        (
            (*MAIN, "command"),
            ["bitfusion", "run", "-n", "1", "-p", "1.5", "--", "python"],
            "`bitfusion run -p 1.5` is not a valid share",
        ),
        (
            (*MAIN, "command"),
            ["bitfusion run -n 1 -p 0.5 -m 800 python"],
            "`bitfusion run` has both -p and -m",
        ),
        ((*MAIN, "args"), ["--epochs=3"], "args don't reach the command"),
        ((*MAIN, "nodeSelector"), {"a": "b"}, "nodeSelector is in the container main"),
        (("spec", "command"), ["true"], "command is in the pod's spec"),
        (("spec", "volumes"), [{"name": "ca", "emptyDir": {}}], "the volume ca clashes"),
        (("spec", "initContainers"), [{"name": "populate", "image": "i"}], "the name populate is taken"),
        (
            ("spec", "initContainers"),
            [{"name": "x", "image": "i", "command": ["bitfusion list_gpus"]}],
            "the initContainer x runs before the client is there",
        ),
        (
            ("spec", "initContainers"),
            [{"name": "x", "image": "i", "resources": {"limits": {"bitfusion.io/gpu-amount": 1}}}],
            "the initContainer x asks for",
        ),
        (
            ("spec", "containers"),
            [WEB, GOOD["spec"]["containers"][0]],
            "the container main requests GPUs and isn't the first",
        ),
        (
            ("spec", "containers"),
            [GOOD["spec"]["containers"][0]] * 2,
            "the container main is the second that requests GPUs",
        ),
        (
            ("spec", "containers"),
            [GOOD["spec"]["containers"][0], {**WEB, "command": ["nginx"]}],
            "the container web has a command and requests no GPU",
        ),
    ],
)
def test_one_thing_wrong_is_reported(path, to, words):
    found = messages(changed(*path, to=to))
    assert any(words in each for each in found), found


def test_memory_is_compared_with_the_setting_of_the_webhook():
    pod = changed(*LIMITS, to={"bitfusion.io/gpu-amount": 1, "bitfusion.io/gpu-memory": "8000M"})
    assert messages(pod) == [
        "warning: bitfusion.io/gpu-memory works only where the plug-in's total_gpu_memory is set"
    ]
    assert messages(pod, memory=16000) == []
    assert messages(pod, memory=8000) == ["error: bitfusion.io/gpu-memory is 8000 MB"]
    assert messages(changed(*LIMITS, to={"bitfusion.io/gpu-amount": 1, "bitfusion.io/gpu-memory": "1k"})) == [
        "error: bitfusion.io/gpu-memory is 1k"
    ]


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (8000, []),
        (
            "8000M",
            ["error: bitfusion.io/gpu-memory is 8000M, which release 0.1 reads as 8000000000 megabytes"],
        ),
        ("0.5", ["error: bitfusion.io/gpu-memory is 0.5"]),
    ],
)
def test_release_0_1_takes_memory_as_a_bare_number_of_megabytes(memory, expected):
    pod = changed(*LIMITS, to={"bitfusion.io/gpu-num": 1, "bitfusion.io/gpu-memory": memory})
    pod["metadata"]["annotations"] = {"auto-management/bitfusion": "yes"}
    assert messages(pod, version="0.1") == expected


def test_pods_beside_the_webhook_get_the_remark_that_it_may_not_see_them():
    assert messages(changed("metadata", "namespace", to="bwki")) == [
        "warning: pods in bwki don't reach a webhook that bfinfra installed"
    ]


def test_a_boolean_is_no_annotation():
    text = yaml.safe_dump(GOOD).replace("bitfusion: all", "bitfusion: yes").replace("'450'", "450")
    assert [each for each in messages(text) if "is not text" in each] == [
        "error: the annotation auto-management/bitfusion is not text",
        "error: the annotation bitfusion-client/version is not text",
    ]


def test_json_on_one_long_line_is_read_as_well_as_yaml():
    assert messages(json.dumps(GOOD)) == []


def test_a_request_without_a_limit_is_an_error_only_where_the_webhook_does_not_write_both():
    words = "bitfusion.io/gpu-amount has no limit"
    pod = changed(*MAIN, "resources", to={"requests": {"bitfusion.io/gpu-amount": 1}})
    assert messages(pod) == [f"warning: {words}"]
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    assert f"error: {words}" in messages(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"template": template},
        }
    )


def test_in_release_0_1_a_second_container_may_have_a_command_and_several_elements_are_one_line():
    gpus = {
        "name": "main",
        "image": "i",
        "env": [{"name": "A"}],
        "command": ["python", "train.py"],
        "resources": {"limits": {"bitfusion.io/gpu-num": 1}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"auto-management/bitfusion": "on"}},
        "spec": {"containers": [gpus, {**WEB, "command": ["nginx"]}]},
    }
    assert messages(pod, version="0.1") == []
    pod["metadata"]["annotations"]["auto-management/bitfusion"] = "all"
    assert "which does not enable it" in messages(pod, version="0.1")[0]


def test_templates_lists_and_several_documents_are_looked_through():
    inner = {"metadata": {"annotations": GOOD["metadata"]["annotations"]}, "spec": GOOD["spec"]}
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": inner}}
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": {"template": inner}}},
    }
    assert messages(yaml.safe_dump_all([job, {"kind": "List", "items": [cron, GOOD]}])) == []
    assert (
        messages({**job, "metadata": GOOD["metadata"]})[0]
        == "error: the annotation auto-management/bitfusion is on the Job"
    )
    assert messages({"kind": "ConfigMap"}) == ["error: it contains no pod and no workload"]


def test_a_pod_without_bitfusion_is_none_of_its_business():
    assert (
        messages(
            {
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {"containers": [{**WEB, "command": ["a", "b"]}]},
            }
        )
        == []
    )


def test_the_command_ends_with_1_on_errors_and_prints_json(capsys, monkeypatch):
    assert (
        main(["lint", "--plugin-version", "0.1", str(SAMPLES / "document-pod.yaml"), "--output", "json"]) == 1
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["type"], found["good"], found["remarks"][0]["where"]["line"]) == ("lint", False, 25)
    assert main(["lint", "--plugin-version", "0.1", str(SAMPLES / "document-pod-indented.yaml")]) == 0
    assert "0 errors, for release 0.1" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod\n\xff: 1\n")))
    assert main(["lint", "-"]) == 0


def test_what_is_no_yaml_and_too_large_is_reported(tmp_path):
    assert messages("a: [")[0].startswith("error: this is not YAML")
    assert messages("a: " + "x" * (5 << 20))[0].startswith("error: it is larger than")
