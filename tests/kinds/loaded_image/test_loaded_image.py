"""Images brought to machines without a registry: what is loaded, when it is loaded again, and what is
refused; on the sandbox's machines with --peers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan, world
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.images import Images
from bfinfra.backends.transport import Transport
from bfinfra.kinds.image.container_image import Spec as Recipe
from bfinfra.kinds.image.container_image import State as Built
from bfinfra.kinds.machine.loaded_image import decide
from bfinfra.kinds.machine.loaded_image.decide import Load, Remove
from bfinfra.kinds.machine.loaded_image.runtime import commands, listed, of_kubelet
from bfinfra.kinds.machine.loaded_image.spec import Spec
from bfinfra.kinds.machine.loaded_image.state import Found, Loaded, LoadedImageFacts, Noted, State, record
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.compare import Unknown
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play
from bfinfra.sandbox import Running

MARK = Mark("site", "loaded_image/webhook")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("one", "two"), 1)
}
IMAGE, FULL = "team/webhook:1", "docker.io/team/webhook:1"
IDS = {"archive": "sha256:" + "a" * 64, "docker": "sha256:" + "b" * 64, "other": "sha256:" + "c" * 64}
EMPTY = Found(images={"docker": {}})
STORE = "/var/lib/docker/images.json"


def spec(**how: Any) -> Spec:
    return Spec.model_validate(
        {
            "hosts": ["one", "two"],
            **({} if "built" in how else {"archive": "webhook.tar", "image": IMAGE}),
            **how,
        }
    )


def loaded(given: Spec, *, now: str = IDS["docker"], **noted: Any) -> Loaded:
    return Loaded(
        Noted(
            **{
                "mark": MARK.committed(given.applied()),
                "runtime": "docker",
                "image": IMAGE,
                "content": IDS["archive"],
                "listed": IDS["docker"],
                **noted,
            }
        ),
        now,
    )


def steps(
    given: Spec | None,
    on: Mapping[str, Loaded] = {},
    *,
    found: Mapping[str, Found] | None = None,
    facts: Mapping[str, Any] = {},
    needs: Mapping[str, ResolvedRef] = {},
) -> list[Any]:
    there = dict.fromkeys(MACHINES, EMPTY) if found is None else found
    mark = next((each.mark for each in on.values() if each.mark), None)
    state = (
        State(mark=mark, hosts=tuple(on), on=on, machines={host: MACHINES[host] for host in on})
        if on
        else None
    )
    context = PlanContext(
        MARK,
        needs=needs,
        facts=LoadedImageFacts(MACHINES, there, **{"packages": {"webhook": IDS["archive"]}, **facts}),
    )
    return list(decide.steps("webhook", given, state, context))


def built(**state: Any) -> dict[str, ResolvedRef]:
    image = Recipe.model_validate({"image": IMAGE, "source": "."})
    return {
        "built": ResolvedRef(
            Key("container_image", "webhook"), image, Built(**{"tool": "docker", **state}) if state else None
        )
    }


@of_several("loaded_image.hosts")
def test_it_is_loaded_where_it_is_not_and_left_where_it_is() -> None:
    (step,) = steps(spec())
    assert (type(step), step.title(), step.runtimes) == (
        Load,
        "load team/webhook:1 onto one, two",
        {"one": "docker", "two": "docker"},
    )
    (step,) = steps(spec(), {"one": loaded(spec())})
    assert (step.names, list(step.machines)) == ("two", ["two"])
    assert steps(spec(), {"one": loaded(spec()), "two": loaded(spec())}) == []


@pytest.mark.parametrize("now", ["", IDS["other"]])
def test_an_image_removed_or_replaced_by_hand_is_loaded_again_there_alone(now: str) -> None:
    (step,) = steps(spec(), {"one": loaded(spec(), now=now), "two": loaded(spec())})
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.one.content", None, "a" * 12)
    ]
    assert step.names == "one"


def test_another_image_in_the_archive_is_loaded_everywhere() -> None:
    (step,) = steps(
        spec(), {"one": loaded(spec()), "two": loaded(spec())}, facts={"packages": {"webhook": IDS["other"]}}
    )
    assert (step.names, step.content) == ("one, two", IDS["other"])


def test_an_archive_that_is_away_holds_back_only_what_needs_it() -> None:
    away = {"away": {"webhook": ("archive", Absent("webhook.tar is not there yet"))}, "packages": {}}
    assert steps(spec(), {"one": loaded(spec()), "two": loaded(spec())}, facts=away) == []
    with pytest.raises(Awaited, match="not there yet"):
        steps(spec(), facts=away)


def test_what_is_built_in_this_site_is_loaded_as_it_will_be_built() -> None:
    given = spec(built="webhook")
    (step,) = steps(given, needs=built())
    assert step.content == Unknown(Key("container_image", "webhook"), "built")
    there = {host: loaded(given, content="one") for host in MACHINES}
    assert steps(given, there, needs=built(built=f"{IMAGE} one", due=f"{IMAGE} one")) == []
    (step,) = steps(given, there, needs=built(built=f"{IMAGE} one", due=f"{IMAGE} two"))
    assert (step.names, step.content) == ("one, two", "two")


def test_what_nothing_builds_here_waits_and_says_what_to_do() -> None:
    with pytest.raises(
        Awaited, match="not built on this machine; none of docker is there; build it elsewhere"
    ):
        steps(spec(built="webhook"), needs=built(tool="", why="none of docker is there", due=f"{IMAGE} one"))


@pytest.mark.parametrize(
    ("runtime", "found", "why"),
    [
        (
            None,
            Found(silent={"docker": "Cannot connect to the Docker daemon"}),
            "no container runtime answers on one.*Cannot connect",
        ),
        (
            "containerd",
            Found(images={"docker": {}}, silent={"containerd": "connection refused"}),
            "containerd does not answer on one; connection refused",
        ),
        (None, Found(kubelet="containerd", images={"docker": {}}), "containerd does not answer on one"),
    ],
)
def test_a_machine_whose_runtime_does_not_answer_is_refused_before_anything_is_written(
    runtime: str | None, found: Found, why: str
) -> None:
    with pytest.raises(Refusal, match=why):
        steps(spec(runtime=runtime), found={"one": found, "two": EMPTY})


def test_the_kubelets_own_runtime_gets_it() -> None:
    found = Found(
        kubelet=of_kubelet(
            'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"'
        ),
        images={"docker": {}, "containerd": {}},
    )
    (step,) = steps(spec(), found={"one": found, "two": EMPTY})
    assert step.runtimes == {"one": "containerd", "two": "docker"}
    assert [
        of_kubelet(f"--container-runtime-endpoint=unix:///var/run/{each}")
        for each in ("crio/crio.sock", "cri-dockerd.sock", "other.sock")
    ] == ["podman", "docker", None]
    assert of_kubelet("--network-plugin=cni") is None


def test_an_image_that_somebody_else_brought_to_one_of_the_machines_is_refused() -> None:
    with pytest.raises(Refusal, match="on two was not loaded for loaded_image/webhook"):
        steps(spec(), {"one": loaded(spec()), "two": loaded(spec(), mark=None)})


def test_it_is_removed_from_machines_that_are_named_no_more_and_by_the_runtime_that_has_it() -> None:
    alone = spec(hosts=["one"])
    there = {"one": loaded(alone), "two": loaded(alone, runtime="containerd")}
    (step,) = steps(alone, there)
    assert (type(step), step.title(), step.runtimes) == (
        Remove,
        "remove team/webhook:1 from two",
        {"two": "containerd"},
    )
    (step,) = steps(None, {**there, "two": loaded(alone, now="")})
    assert step.runtimes == {"one": "docker", "two": ""}


def test_each_runtime_lists_in_its_own_words() -> None:
    id_ = IDS["docker"]
    assert listed("docker", f"team/webhook:1 {id_}\n<none>:<none> {id_}\nbusybox:latest {id_}\n") == {
        FULL: id_,
        "docker.io/library/busybox:latest": id_,
    }
    assert listed("podman", f"10.1.0.3:5000/team/webhook:1 {id_}\n") == {"10.1.0.3:5000/team/webhook:1": id_}
    assert listed(
        "containerd",
        (
            f"REF TYPE DIGEST SIZE PLATFORMS LABELS\n{FULL} application/vnd.oci.image.index.v1+json {id_} "
            "3.1 MiB linux/amd64 -\n"
        ),
    ) == {FULL: id_}
    assert commands("docker", "docker.io/library/busybox", "/a.tar").show[-1] == "busybox:latest", (
        "docker lists nothing under docker.io/library/busybox:latest"
    )
    assert commands("containerd", IMAGE, "/a.tar").used == (
        "ctr",
        "--namespace",
        "k8s.io",
        "containers",
        "ls",
        "--quiet",
        f"image=={FULL}",
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"archive": None, "image": None}, "give either built or archive"),
        ({"image": None}, "give its image by name"),
        ({"built": "webhook", "image": IMAGE}, "it goes with archive"),
        ({"hosts": ["one", "one"]}, "one is listed twice"),
        ({"image": "team/webhook@sha256:" + "a" * 64}, "image"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        spec(**fields)


def test_a_tag_that_pods_pull_all_the_same_is_reported() -> None:
    key, builder = Key("loaded_image", "webhook"), Key("container_image", "webhook")

    def drifts(given: Spec, image: str = IMAGE) -> list[tuple[str, str, bool]]:
        site = {key: given, builder: Recipe.model_validate({"image": image, "source": "."})}
        return [(each.at.field, each.what, each.stops) for each in Spec.conflicts({key: given}, site)]

    assert drifts(spec()) == drifts(spec(built="webhook")) == []
    assert drifts(spec(image="team/webhook")) == [("image", "pods pull team/webhook all the same", False)]
    assert drifts(spec(built="webhook"), "team/webhook:latest") == [
        ("built", "pods pull team/webhook:latest all the same", False)
    ]


def test_an_archive_without_the_image_is_refused_with_what_it_holds(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        EXAMPLES["loaded_image"]
        .read_text()
        .replace("image: team/bitfusion-webhook:0.4-1", "image: team/bitfusion-webhook:0.5")
    )
    (problem,) = plan(path, sandbox).problems
    assert (
        "it holds docker.io/team/bitfusion-webhook:0.4-1, and not docker.io/team/bitfusion-webhook:0.5"
        in str(problem)
    )


def stored(sandbox: Running, host: str = "gpu-01", store: str = STORE) -> dict[str, str]:
    return json.loads(sandbox.world()["linux"][host]["files"].get(store, "{}"))


@pytest.mark.peers  # Ansible's own start, several times
def test_an_image_removed_by_hand_is_drift_and_loaded_again(sandbox: Running) -> None:
    path, before = EXAMPLES["loaded_image"], world(sandbox)
    assert made(apply(path, sandbox))
    whole = stored(sandbox)
    sandbox.change({"machine": "gpu-01", "path": STORE, "text": None})
    assert [each.field for each in drift(path, sandbox).alarming] == ["on.gpu-01.content"]
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert stored(sandbox) == whole != {}
    assert made(apply(path, sandbox, destroy=True))
    assert world(sandbox) == before


@pytest.mark.peers  # Ansible's own start, several times
def test_machines_get_it_by_the_runtime_that_they_have_and_lose_it_alone(
    sandbox: Running, tmp_path: Path
) -> None:
    before, path, given = (
        world(sandbox),
        tmp_path / "site.yaml",
        yaml.safe_load(EXAMPLES["loaded_image"].read_text()),
    )
    given["linux_host"]["node-01"] = {**given["linux_host"]["gpu-01"], "address": "10.5.0.21"}
    for hosts, there in ((["gpu-01", "node-01"], (True, True)), (["gpu-01"], (True, False))):
        given["loaded_image"]["webhook"]["hosts"] = hosts
        path.write_text(yaml.safe_dump(given))
        outcome = apply(path, sandbox)
        assert made(outcome), endings(outcome)
        assert (
            bool(stored(sandbox)),
            bool(stored(sandbox, "node-01", "/var/lib/containerd/images.json")),
        ) == there
        assert plan(path, sandbox).pending == ()
    assert made(apply(path, sandbox, destroy=True))
    assert world(sandbox) == before


@pytest.mark.peers  # Ansible's own start
def test_an_image_that_containers_use_stays_and_its_record_with_it(sandbox: Running) -> None:
    trust = HostTrust(known_hosts=LocalFile("known_hosts", sandbox.files / "ssh/known_hosts"))
    machine = LinuxMachine(
        "node-01", "10.5.0.21", "root", trust, key=Secret("file", str(sandbox.files / "ssh/id_ed25519"))
    )
    sandbox.change({"machine": "node-01", "path": record("webhook"), "text": "ours\n"})
    before = world(sandbox)
    hosts = LinuxHosts(Transport(route=sandbox.lookup))
    try:
        uses = {
            "record": record("webhook"),
            "archive": "/var/cache/bfinfra/webhook.tar",
            "used": ["cat", record("webhook")],
            "remove": ["rmdir", "/never"],
        }
        played = hosts.play(Play("loaded_image", {machine: uses}, tasks="remove"))
    finally:
        hosts.close()
    assert played.failed["node-01"].startswith("no container may use the image:") and played.failed[
        "node-01"
    ].endswith("ours")
    assert world(sandbox) == before


BUILDER = """#!{python}
import pathlib, shutil, sys
folder, words = pathlib.Path({folder!r}), sys.argv[1:]
if words[0] == "build":
    sys.path.insert(0, {root!r})
    from bfinfra.sandbox.factories.image import make_image
    make_image(folder / "built.tar", image=words[words.index("--tag") + 1], text=(pathlib.Path(words[-1]) / "main.go").read_text())
elif words[0] == "save":
    shutil.copy(folder / "built.tar", words[words.index("--output") + 1])
elif words[0] == "version":
    print("24.0")
else:
    sys.exit("no registry is there")
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site that builds an image and loads it, with a docker that builds here: the sandbox has none."""
    init = Images.__init__
    monkeypatch.setattr(Images, "__init__", lambda self, site, **_: init(self, site))
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin/docker"
    docker.write_text(
        BUILDER.format(python=sys.executable, folder=str(tmp_path), root=str(Path(__file__).parents[3]))
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone/Dockerfile").write_text("FROM scratch\nCOPY main.go /\n")
    (tmp_path / "clone/main.go").write_text("package one\n")
    given = yaml.safe_load(EXAMPLES["loaded_image"].read_text())
    given["container_image"] = {"webhook": {"image": IMAGE, "source": str(tmp_path / "clone"), "push": False}}
    given["loaded_image"] = {"webhook": {"hosts": ["gpu-01"], "built": "webhook"}}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    return tmp_path / "site.yaml"


@pytest.mark.peers  # Ansible's own start, several times
def test_what_is_built_here_is_saved_and_loaded_and_loaded_again_in_the_apply_that_builds_it_anew(
    site: Path, sandbox: Running
) -> None:
    before = world(sandbox)
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    first = stored(sandbox)
    assert list(first) == [FULL]
    assert plan(site, sandbox).pending == ()
    (site.parent / "clone/main.go").write_text("package two\n")
    assert [str(item.key) for item in plan(site, sandbox).pending] == [
        "container_image/webhook",
        "loaded_image/webhook",
    ]
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    assert stored(sandbox).keys() == first.keys() and stored(sandbox) != first
    assert not list((site.parent / "state").rglob("*.tar")), "archives go once they are loaded"
    assert made(apply(site, sandbox, destroy=True))
    assert world(sandbox) == before


def test_without_a_tool_what_is_built_here_is_planned_and_the_apply_says_what_to_do(
    site: Path, sandbox: Running
) -> None:
    for name in ("docker", "podman", "buildah"):  # one that works may be on this machine
        (site.parent / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (site.parent / "bin" / name).chmod(0o755)
    outcome = apply(site, sandbox)
    assert "container_image/webhook is not built on this machine" in endings(outcome)["loaded_image/webhook"]
    assert stored(sandbox) == {}
    assert [item.held.what for item in plan(site, sandbox).held] == [
        "loaded_image/webhook: container_image/webhook is not built on this machine"
    ]


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    """What docker has stands in one file: the look is at this image alone."""
    store = on_machine(
        sandbox,
        "gpu-01",
        "/var/lib/docker/images.json",
        json.dumps({f"docker.io/{name}": f"sha256:{'7' * 64}"}) + "\n",
    )
    return lambda: str(json.loads(store()).get(f"docker.io/{name}"))


UNMANAGED = Entry(at="team/bitfusion-webhook:0.4-1", plant=unmanaged, inside="an image is whole")
