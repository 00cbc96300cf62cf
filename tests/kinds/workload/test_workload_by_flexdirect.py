"""`flexdirect run` in front of what a container starts, as the guide writes it by hand."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from bfinfra.kinds.cluster.workload import flexdirect
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.model.errors import Refusal

MANIFEST = Path(__file__).parents[3] / "specs/manifests/tf-cnn-flexdirect.yaml"
POD = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]


def attached(pod=POD, **how):
    found = copy.deepcopy(pod)
    spec = Spec.model_validate(
        {"cluster": "k", "manifest": str(MANIFEST), "by": "flexdirect", "gpus": 1, **how}
    )
    flexdirect.attach(found, found["containers"][0], spec, "Job/tf-cnn")
    return found


def test_the_guides_half_gpu():
    pod = attached(fraction=0.5)
    container = pod["containers"][0]
    assert container["args"][:8] == ["flexdirect", "run", "-n", "1", "-p", "0.5", "/bin/bash", "-c"]
    assert container["args"][8].startswith("python benchmarks/scripts/tf_cnn_benchmarks")
    assert pod["volumes"] == [
        {"name": "bitfusionio", "hostPath": {"path": "/etc/bitfusionio", "type": "Directory"}}
    ]
    assert container["volumeMounts"] == [{"name": "bitfusionio", "mountPath": "/etc/bitfusionio"}]


def test_memory_instead_of_a_share_and_a_command_before_args():
    pod = copy.deepcopy(POD)
    pod["containers"][0]["command"] = ["python"]
    container = attached(pod, gpu_memory="8GiB")["containers"][0]
    assert container["command"] == ["flexdirect", "run", "-n", "1", "-m", "8590", "python"]
    assert container["args"][0] == "/bin/bash"


def test_a_mount_that_is_there_is_kept_and_one_that_is_misspelt_is_refused():
    volumes = [{"name": "bitfusionio", "hostPath": {"path": "/etc/bitfusionio"}}]
    pod = {**copy.deepcopy(POD), "volumes": volumes}
    pod["containers"][0]["volumeMounts"] = [{"name": "bitfusionio", "mountPath": "/etc/bitfusionio/"}]
    assert attached(pod)["volumes"] == volumes
    pod["containers"][0]["volumeMounts"] = [{"name": "bitfusionio", "mountPath": "/etc/bifusionio"}]
    with pytest.raises(Refusal, match="not mounted at /etc/bitfusionio"):
        attached(pod)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"args": ["flexdirect", "run", "-n", "1", "x"]}, "starts flexdirect already"),
        ({"args": []}, "neither command nor args"),
    ],
)
def test_what_there_is_nothing_to_put_it_before_is_refused(change, why):
    pod = copy.deepcopy(POD)
    pod["containers"][0].update(change)
    with pytest.raises(Refusal, match=why):
        attached(pod)


@pytest.mark.parametrize(
    "how", [{"gpus": None}, {"gpu_memory": "1GiB", "fraction": 0.5}, {"by": "env", "gpu_memory": "1GiB"}]
)
def test_what_does_not_go_together_is_refused(how):
    with pytest.raises(ValueError, match=r"needs gpus|it goes with by: flexdirect"):
        attached(**how)
