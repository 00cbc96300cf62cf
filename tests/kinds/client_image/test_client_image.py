"""client_image: the document's Dockerfile, rendered, built where that can be done, and taken away without a
trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kinds.unmanaged import Entry, Look

from bfinfra.backends.ansible import Answer
from bfinfra.backends.bitfusion import read_token
from bfinfra.backends.images import Images
from bfinfra.engine import graph
from bfinfra.engine.observe import ObservedState, needs_of
from bfinfra.engine.plan import DesiredState, decide
from bfinfra.kinds import kind
from bfinfra.kinds.image.client_image import decide as client_image
from bfinfra.kinds.image.client_image.dockerfile import dockerfile, dockerfile_before
from bfinfra.kinds.image.client_image.kind import ClientImage, Spec
from bfinfra.kinds.image.client_image.steps import Build, Commit, Delete, Push, Render
from bfinfra.kinds.machine.linux_host import kind as linux_host
from bfinfra.kinds.source.bitfusion_token.kind import BitfusionToken
from bfinfra.model.awaited import Awaited
from bfinfra.model.errors import BfinfraError, Refusal, Rejected, SiteError, Unreachable
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.model.step import Step
from bfinfra.sandbox import Running
from bfinfra.sandbox.factories.deb import make_deb
from bfinfra.sandbox.factories.token import make_token
from bfinfra.spec.load import load

pytestmark = pytest.mark.thorough

PACKAGE = "bitfusion-client-ubuntu2004_3.0.0-11_amd64.deb"
KEY = Key("client_image", "pt")
FIELDS = {
    "image": "172.24.206.3/cnasg/pt:latest",
    "base": "ubuntu:20.04",
    "package": PACKAGE,
    "context": "made/pt",
}


@dataclass
class Hosts:
    """Machines' files, as SSH reads them; stands in for LinuxHosts."""

    files: dict[str, str] = field(default_factory=dict)
    down: str = ""

    def read(
        self, wanted: Mapping[LinuxMachine, Mapping[str, tuple[str, str]]], timeout: float = 60
    ) -> dict[LinuxMachine, Any]:
        if self.down:
            return {
                machine: Unreachable("no answer", server=machine.server, why=self.down) for machine in wanted
            }
        return {
            machine: {title: self._answer(*command) for title, command in commands.items()}
            for machine, commands in wanted.items()
        }

    def _answer(self, program: str, *words: str) -> Answer:
        (path,) = (word for word in words if word != "--")
        text = self.files.get(path)
        if text is None:
            return Answer(f"{path}: No such file or directory", 1)
        return Answer(
            text if program == "cat" else f"{hashlib.sha256(text.encode()).hexdigest()}  {path}\n", 0
        )


class Place:
    """A folder with a package, a token and a site; and the engine's loop over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_deb(folder / PACKAGE, package="bitfusion-client-ubuntu2004", version="3.0.0-11")
        make_token(folder / "token.tar", servers=["10.2.0.5:56001"])
        self.hosts = Hosts()
        self.machines: dict[str, LinuxMachine] = {}

    def site(self, *, absent: bool = False, **fields: Any) -> Site:
        whole = "".join(f"    {name}: {value}\n" for name, value in {**FIELDS, **fields}.items())
        images = "" if absent else f"client_image:\n  pt:\n{whole}"
        host = f"address: 10.0.0.1, user: root, key: {{env: K}}, trust: {{sha256: 'SHA256:{'A' * 43}'}}"
        hosts = f"linux_host: {{enabled: {{{host}}}}}\n" if "client_files" in fields else ""
        (self.folder / "site.yaml").write_text(
            f"site: g\n{hosts}bitfusion_token: {{cnasg: {{source: {{tar: token.tar}}}}}}\n{images}"
        )
        return load([self.folder / "site.yaml"])

    def look(self, site: Site) -> tuple[ObservedState, dict[str, Any]]:
        kinds: dict[str, Any] = {
            "bitfusion_token": BitfusionToken(),
            "client_image": ClientImage(Images(site), self.hosts),
        }
        world = ObservedState()
        world.states |= {
            Key("linux_host", name): linux_host.State(machine=machine)
            for name, machine in self.machines.items()
        }
        for level in graph.levels(kinds):
            for name in level:
                wanted = {key.name: spec for key, spec in site.resources.items() if key.kind == name}
                world.take(
                    name, kinds[name].observe(wanted, needs_of(name, kinds[name], site.resources, world))
                )
        return world, kinds

    def plan(self, site: Site) -> tuple[Step, ...]:
        world, kinds = self.look(site)
        return decide(KEY, DesiredState.of(site), world, kinds)

    def apply(self, site: Site, *, until: int = 99) -> list[Step]:
        """The engine's loop; `until`: killed after so many steps."""
        ran: list[Step] = []
        while (steps := self.plan(site)) and len(ran) < until:
            assert not ran or steps[0] != ran[-1], f"{steps[0]} did not take"
            kinds = self.look(site)[1]
            kinds["client_image"].run(steps[0], lambda _: None)
            ran.append(steps[0])
        return ran

    def files(self) -> set[str]:
        return {str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file()} - {
            "site.yaml",
            PACKAGE,
            "token.tar",
            "docker.log",
        }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path.parent / f"{tmp_path.name}-state"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Place(tmp_path)


@pytest.fixture
def docker(place: Place) -> Path:
    """A docker that works, and notes what it was asked for."""
    (place.folder / "bin").mkdir()
    program, log = place.folder / "bin" / "docker", place.folder / "docker.log"
    program.write_text(f'#!/bin/sh\ntest "$1" = version && echo 24.0 && exit 0\necho "$@" >> {log}\n')
    program.chmod(0o755)
    return log


def kinds_of(steps: list[Step] | tuple[Step, ...]) -> list[type[Step]]:
    return [type(step) for step in steps]


BEFORE = """\
# The token is not in this image: mount a Secret with client.yaml, servers.conf and ca.crt at /etc/bitfusion,
# as a workload does that names a token_secret.
RUN mkdir -p /etc/bitfusion/tls
"""
"""From a Dockerfile that an earlier release wrote."""


def test_what_an_earlier_release_wrote_and_built_is_up_to_date_until_something_else_changes(
    place: Place, docker: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_image, "dockerfile", dockerfile_before)
        assert kinds_of(place.apply(place.site())) == [Render, Build, Push, Commit]
    written = place.folder / "made/pt/Dockerfile"
    assert BEFORE in written.read_text()
    assert place.plan(place.site()) == ()
    written.write_text(f"{written.read_text()}RUN true\n")
    assert kinds_of(place.plan(place.site()))[0] is Render
    written.write_text(dockerfile_before(place.site().resources[KEY]))
    assert kinds_of(place.apply(place.site(base='"pytorch:2"', image="i:2"))) == [Render, Build, Push, Commit]
    assert BEFORE not in written.read_text()
    assert place.plan(place.site(base='"pytorch:2"', image="i:2")) == ()


def test_without_a_tool_it_renders_and_says_what_to_run(place: Place) -> None:
    site = place.site()
    assert kinds_of(place.apply(site)) == [Render, Commit]
    assert place.plan(site) == ()
    assert place.files() == {
        "made/pt/.bfinfra.json",
        "made/pt/.dockerignore",
        "made/pt/Dockerfile",
        f"made/pt/bitfusion-files/{PACKAGE}",
    }
    world, kinds = place.look(site)
    ready = kinds["client_image"].ready(site.resources[KEY], world.states[KEY])
    assert ready.status == "ready"
    assert (
        f"run: docker build --tag 172.24.206.3/cnasg/pt:latest {place.folder}/made/pt && docker push "
        "172.24.206.3/cnasg/pt:latest"
    ) in ready.note
    assert "none of docker, podman, buildah is installed" in ready.note


def test_with_a_tool_it_is_built_and_pushed_once(place: Place, docker: Path) -> None:
    site = place.site()
    assert kinds_of(place.apply(site)) == [Render, Build, Push, Commit]
    assert place.apply(site) == []
    assert docker.read_text().splitlines() == [
        f"build --tag 172.24.206.3/cnasg/pt:latest {place.folder}/made/pt",
        "push 172.24.206.3/cnasg/pt:latest",
    ]
    world, kinds = place.look(site)
    assert (
        kinds["client_image"].ready(site.resources[KEY], world.states[KEY]).note
        == "172.24.206.3/cnasg/pt:latest is built and pushed"
    )


def test_a_tool_that_comes_later_builds_what_was_rendered(
    place: Place, request: pytest.FixtureRequest
) -> None:
    site = place.site()
    place.apply(site)
    request.getfixturevalue("docker")
    assert [change.field for change in place.plan(site)[0].changes] == ["built"]
    assert kinds_of(place.apply(site)) == [Build, Push, Commit]


@pytest.mark.parametrize(
    ("fields", "steps"),
    [({"build": "never"}, [Render, Commit]), ({"push": "false"}, [Render, Build, Commit])],
)
def test_building_and_pushing_can_be_left_out(
    place: Place, docker: Path, fields: dict[str, str], steps: list[type[Step]]
) -> None:
    assert kinds_of(place.apply(place.site(**fields))) == steps


@pytest.mark.parametrize(
    ("fields", "steps", "named"),
    [
        ({"base": "ubuntu:20.04.6"}, [Render, Build, Push, Commit], {"base", "files.Dockerfile"}),
        ({"image": "172.24.206.3/cnasg/pt:2"}, [Build, Push, Commit], {"image"}),
        ({"protect": "true"}, [Commit], {"protect"}),
        ({"context": "made/other"}, [Delete, Render, Build, Push, Commit], {"context"}),
    ],
)
def test_a_change_in_the_file_does_what_it_takes_and_names_its_fields(
    place: Place, docker: Path, fields: dict[str, str], steps: list[type[Step]], named: set[str]
) -> None:
    place.apply(place.site())
    planned = place.plan(place.site(**fields))
    assert kinds_of(planned) == steps
    assert {change.field for step in planned for change in step.changes} == named
    place.apply(place.site(**fields))
    assert place.plan(place.site(**fields)) == ()


def test_a_file_changed_by_hand_is_drift_and_is_rendered_and_built_again(place: Place, docker: Path) -> None:
    place.apply(place.site())
    (place.folder / "made/pt/Dockerfile").write_text("FROM evil")
    planned = place.plan(place.site())
    assert {change.field for step in planned for change in step.changes} == {"files.Dockerfile"}
    assert kinds_of(place.apply(place.site())) == [Render, Commit], "the image was built of the right files"


def test_a_new_package_under_the_same_name_is_built_anew(place: Place, docker: Path) -> None:
    place.apply(place.site())
    make_deb(place.folder / PACKAGE, package="bitfusion-client-ubuntu2004", version="3.0.1-4")
    assert kinds_of(place.apply(place.site())) == [Render, Build, Push, Commit]


def test_a_new_token_is_baked_in_anew(place: Place, docker: Path) -> None:
    baked = {"token": "cnasg", "authorization": "baked"}
    place.apply(place.site(**baked))
    make_token(place.folder / "token.tar", servers=["10.2.0.6:56001"])
    assert kinds_of(place.apply(place.site(**baked))) == [Render, Build, Push, Commit]


def test_a_baked_token_is_in_the_context_and_nowhere_else(place: Place) -> None:
    site = place.site(token="cnasg", authorization="baked")
    planned = place.plan(site)
    secret = read_token(place.folder / "token.tar").client_yaml
    assert secret not in repr(planned)
    place.apply(site)
    files = place.folder / "made/pt/bitfusion-files"
    assert (files / "client.yaml").read_text() == secret
    assert (files / "client.yaml").stat().st_mode & 0o077 == 0
    assert secret.strip() not in (place.folder / "made/pt/.bfinfra.json").read_text()
    place.apply(place.site())
    assert not (files / "client.yaml").exists(), "mounted now: the token's files are gone"


def test_a_baked_token_is_warned_of_and_the_mount_is_offered(place: Place) -> None:
    message = [str(warned.problem) for warned in place.site(token="cnasg", authorization="baked").warnings]
    assert len(message) == 1
    assert "site.yaml:10:" in message[0]
    assert "the token stays in the layers of the image" in message[0]
    assert "token_secret" in message[0]
    assert place.site(token="cnasg").warnings == ()


@pytest.mark.parametrize("tool", [False, True])
def test_killed_after_any_step_the_next_apply_finishes(
    place: Place, request: pytest.FixtureRequest, tool: bool
) -> None:
    if tool:
        request.getfixturevalue("docker")
    site = place.site(token="cnasg", authorization="baked")
    for cut in range(1, 5):
        place.apply(site, until=cut)
        place.apply(site)
        assert place.plan(site) == ()
        place.apply(place.site(absent=True))
        assert place.files() - {"bin/docker"} == set()


def test_it_goes_without_a_trace_when_it_leaves_the_file(place: Place) -> None:
    place.apply(place.site())
    assert kinds_of(place.apply(place.site(absent=True))) == [Delete]
    assert not (place.folder / "made").exists()
    assert place.plan(place.site(absent=True)) == ()


def test_what_others_put_into_the_folder_stays(place: Place) -> None:
    place.apply(place.site())
    (place.folder / "made/pt/notes.txt").write_text("mine")
    place.apply(place.site(absent=True))
    assert place.files() == {"made/pt/notes.txt"}


def test_a_context_that_holds_somebody_s_dockerfile_is_refused(place: Place) -> None:
    (place.folder / "made/pt").mkdir(parents=True)
    (place.folder / "made/pt/Dockerfile").write_text("FROM mine")
    with pytest.raises(BfinfraError, match="bfinfra did not make it"):
        place.plan(place.site())


def test_a_context_of_another_site_is_refused(place: Place) -> None:
    place.apply(place.site())
    mark = place.folder / "made/pt/.bfinfra.json"
    mark.write_text(mark.read_text().replace("site=g ", "site=other "))
    with pytest.raises(BfinfraError, match="belongs to client_image/pt of the site other"):
        place.plan(place.site())


def test_a_failing_build_stops_and_the_next_apply_tries_again(place: Place, docker: Path) -> None:
    program = place.folder / "bin" / "docker"
    working = program.read_text()
    program.write_text(working.replace('echo "$@" >>', "echo E: unable to locate; exit 100 #"))
    with pytest.raises(Rejected, match="unable to locate"):
        place.apply(place.site())
    program.write_text(working)
    assert kinds_of(place.apply(place.site())) == [Build, Push, Commit]


def test_a_package_that_is_none_is_refused_before_anything_is_written(place: Place) -> None:
    (place.folder / PACKAGE).write_text("<html>please log in</html>")
    with pytest.raises(BfinfraError, match=r"is no \.deb package"):
        place.plan(place.site())


def test_package_and_token_are_needed_by_who_writes_them_and_by_nobody_else(
    place: Place, docker: Path
) -> None:
    site = place.site(authorization="baked", token="cnasg")
    place.apply(site)
    (place.folder / PACKAGE).rename(place.folder / "package")
    (place.folder / "token.tar").unlink()
    assert place.plan(site) == ()
    (place.folder / "made/pt/Dockerfile").write_text("FROM other\n")
    with pytest.raises(Awaited, match=f"{PACKAGE} is not there yet") as awaited:
        place.plan(site)
    assert [change.field for change in awaited.value.steps[0].changes] == ["files.Dockerfile"]
    with pytest.raises(Awaited) as awaited:
        place.plan(place.site(base="ubuntu:20.04.6"))
    assert awaited.value.field == "package"
    (place.folder / "package").rename(place.folder / PACKAGE)
    later = place.plan(site)[0].files["bitfusion-files/client.yaml"]
    assert later == place.look(site)[0].states[KEY].files["bitfusion-files/client.yaml"]


def test_two_images_never_share_a_folder(place: Place) -> None:
    place.site()
    text = (place.folder / "site.yaml").read_text()
    (place.folder / "site.yaml").write_text(
        text + text.partition("client_image:\n")[2].replace("  pt:", "  pt2:", 1)
    )
    with pytest.raises(
        BfinfraError, match=r"client_image/pt2: the folder .*/made/pt is client_image/pt's already"
    ):
        load([place.folder / "site.yaml"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"package": "client.zip"}, r"expected a \.deb or \.rpm file"),
        ({"base": "centos:8"}, r"centos:8 can't install a \.deb package; take the \.rpm package"),
        (
            {"base": "registry.local/library/ubuntu:18.04"},
            r"it is for ubuntu 2004, and the base is registry\.local/library/ubuntu:18\.04",
        ),
        ({"authorization": "baked"}, r"a baked token needs its name in token"),
        ({"users": "{'a b': }"}, r"users"),
        ({"users": "{bob: ../x}"}, r"users"),
        ({"users": "{bob: /home/../etc}"}, r"without \.\."),
        ({"image": "UPPER/case"}, r"image"),
        ({"image": "x; rm -rf /"}, r"image"),
        ({"image": "--privileged"}, r"image"),
        ({"base": "a\\nRUN evil"}, r"base"),
    ],
)
def test_what_could_never_be_built_is_refused_when_the_file_is_read(
    place: Place, fields: Mapping[str, str], message: str
) -> None:
    with pytest.raises(SiteError, match=message):
        place.site(**fields)


def rendered(place: Place, **fields: Any) -> str:
    spec = place.site(**fields).resources[KEY]
    assert isinstance(spec, Spec)
    return dockerfile(spec)


def test_the_dockerfile_is_the_document_s(place: Place) -> None:
    text = rendered(
        place, token="cnasg", authorization="baked", base="pytorch/pytorch:1.8.1-cuda11.1-cudnn8-runtime"
    )
    assert (
        text
        == f"""FROM pytorch/pytorch:1.8.1-cuda11.1-cudnn8-runtime
USER root
{"#" + "-" * 66}
# Bitfusion client's files
{"#" + "-" * 66}
RUN mkdir -p /root/.bitfusion
COPY ./bitfusion-files/client.yaml /root/.bitfusion/client.yaml
COPY ./bitfusion-files/servers.conf /etc/bitfusion/servers.conf
RUN mkdir -p /etc/bitfusion/tls
COPY ./bitfusion-files/ca.crt /etc/bitfusion/tls/ca.crt
{"#" + "-" * 66}
# Bitfusion client
{"#" + "-" * 66}
RUN mkdir -p /workspace/bitfusion/batch-scripts
WORKDIR /workspace/bitfusion
COPY ./bitfusion-files/{PACKAGE} .
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y ./{PACKAGE} open-vm-tools \\
 && rm -rf /var/lib/apt/lists/* ./{PACKAGE}
"""
    )


def test_every_user_gets_the_file_in_their_home(place: Place) -> None:
    text = rendered(
        place,
        token="cnasg",
        authorization="baked",
        users="{root: , jovyan: , svc: /opt/svc}",
        run_as="jovyan",
    )
    for user, home in (("jovyan", "/home/jovyan"), ("svc", "/opt/svc")):
        assert f"COPY --chown={user} ./bitfusion-files/client.yaml {home}/.bitfusion/client.yaml\n" in text
    assert "COPY ./bitfusion-files/client.yaml /root/.bitfusion/client.yaml\n" in text
    assert "for user in jovyan svc; do usermod -aG bitfusion $user" in text
    assert text.endswith("USER jovyan\n")


def test_a_mounted_token_is_not_copied(place: Place) -> None:
    assert "client.yaml /" not in rendered(place)


ENABLED = {"host": "enabled"}
PLACES = {
    "ca.crt": "/etc/bitfusion/tls/ca.crt",
    "servers.conf": "/etc/bitfusion/servers.conf",
    "client.yaml": "/root/.bitfusion/client.yaml",
}


@pytest.fixture
def enabled(place: Place) -> Place:
    """A machine whose VM the plug-in enabled stands beside."""
    place.machines["enabled"] = LinuxMachine(
        "enabled", "10.0.0.1", "root", HostTrust(sha256="SHA256:" + "A" * 43)
    )
    texts = read_token(place.folder / "token.tar").files
    place.hosts.files = {PLACES[name]: text for name, text in texts.items()}
    return place


def test_the_files_of_an_enabled_machine_go_into_the_image_and_follow_it(enabled: Place) -> None:
    site = enabled.site(client_files=ENABLED, authorization="baked")
    enabled.apply(site)
    folder = enabled.folder / "made/pt/bitfusion-files"
    texts = read_token(enabled.folder / "token.tar").files
    assert {name: (folder / name).read_text() for name in texts} == texts
    assert (folder / "client.yaml").stat().st_mode & 0o777 == 0o600
    assert enabled.plan(site) == ()
    make_token(enabled.folder / "other.tar", name="other", servers=["10.2.0.5:56001"])
    enabled.hosts.files[PLACES["client.yaml"]] = read_token(enabled.folder / "other.tar").files["client.yaml"]
    assert {change.field for step in enabled.plan(site) for change in step.changes} == {
        "files.bitfusion-files/client.yaml"
    }


def test_a_machine_without_access_can_give_none(enabled: Place) -> None:
    del enabled.hosts.files["/root/.bitfusion/client.yaml"]
    with pytest.raises(Refusal, match=r"enabled has no /root/\.bitfusion/client\.yaml"):
        enabled.plan(enabled.site(client_files=ENABLED, authorization="baked"))


def test_an_image_waits_for_a_machine_that_does_not_exist_yet(enabled: Place) -> None:
    enabled.machines.clear()
    render = enabled.plan(enabled.site(client_files=ENABLED, authorization="baked"))[0]
    assert str(render.files["bitfusion-files/client.yaml"]) == "(known after linux_host/enabled: digest)"


def test_an_image_can_not_be_read_while_its_machine_is_down(enabled: Place) -> None:
    enabled.hosts.down = "connection refused"
    world, _ = enabled.look(enabled.site(client_files=ENABLED, authorization="baked"))
    assert "connection refused" in world.why_unreadable(KEY)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"client_files": ENABLED}, "write authorization: baked"),
        ({"client_files": ENABLED, "token": "cnasg", "authorization": "baked"}, "give token or client_files"),
    ],
)
def test_files_of_a_machine_are_baked_in_or_not_named(
    enabled: Place, fields: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(SiteError, match=message):
        enabled.site(**fields)


@pytest.mark.parametrize("home", ["", "null", "''"])
def test_an_empty_home_is_the_usual_one(place: Place, home: str) -> None:
    assert place.site(users=f"{{root: {home}, gpu: {home}}}").resources[KEY].homes == {
        "root": "/root",
        "gpu": "/home/gpu",
    }


def test_centos_is_installed_with_yum(place: Place) -> None:
    text = rendered(place, package="bitfusion-client-centos7-3.0.0-11.x86_64.rpm", base="centos:7.9.2009")
    assert "yum install -y ./bitfusion-client-centos7-3.0.0-11.x86_64.rpm open-vm-tools" in text
    assert "apt-get" not in text


def test_the_registry_knows_it() -> None:
    assert kind("client_image") is ClientImage


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    file = sandbox.files / (folder / name).relative_to("/") / "Dockerfile"
    file.parent.mkdir(parents=True)
    file.write_text("FROM scratch\n")
    return lambda: (file.read_text(), file.stat().st_ino, sorted(file.parent.iterdir()))


UNMANAGED = Entry(
    at="context", plant=unmanaged, inside="what else is in its folder stays there (test_client_image.py)"
)
