"""A site of somebody else's: its checks read what it declares, run nothing, and see nothing else of the
machine that they run on.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pytest
import yaml
from pods import CURRENT, Pod, project
from pydantic import BaseModel

import bfinfra
from bfinfra import kinds as registry
from bfinfra.backends.credentials import credentials
from bfinfra.backends.kubernetes import ClusterClient, kubeconfig
from bfinfra.model.errors import BfinfraError, Problem, SiteError
from bfinfra.model.secret import RUN, Secret
from bfinfra.model.sources import BELOW, LocalFile, LocalOutput, Sources
from bfinfra.operator.declared import Contents, mounted, refusal, remove
from bfinfra.operator.desired import Desired
from bfinfra.operator.job import Mould, manifest, unfit
from bfinfra.operator.names import FILE, KEY, OBJECT, SITE, VARIABLE
from bfinfra.operator.watcher.contents import read
from bfinfra.spec.leads import walk

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("specs/kinds/*.yaml"))
ELSEWHERE = (
    "/etc/passwd",
    "/proc/self/environ",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "../other-site/site.yaml",
    "certs/../../x",
    "~/.kube/config",
    "~root/x",
    "..data/../../x",
    "..",
    "a\0b",
)
PROGRAMS_READ = [
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSLKEYLOGFILE",
    "ANSIBLE_CONFIG",
    "ANSIBLE_LIBRARY",
    "HELM_PLUGINS",
    "KUBECONFIG",
    "PATH",
    "HOME",
    "TMPDIR",
    "XDG_STATE_HOME",
    "BFINFRA_STATE_HOME",
    "BFINFRA_TRACEBACK",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "LC_ALL",
    "SSH_AUTH_SOCK",
    "PYDANTIC_DISABLE_PLUGINS",
]
"""Variables that a program or library on the way reads."""


def contents(site: Mapping[str, Any], **files: str) -> Contents:
    return Contents({}, {**{k: v.encode() for k, v in files.items()}, SITE: json.dumps(site).encode()})


def site(**spec: Any) -> Desired:
    meta = {"name": "poc", "namespace": "ns", "uid": "u", "generation": 1}
    return Desired.of({"metadata": meta, "spec": {"site": {"site": "poc"}, **spec}})


def ref(name: str = "s", key: str = "k") -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key}}


def problems(found: Contents, folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(SiteError) as caught:
        found.load(folder)
    return caught.value.problems


# --- what a Site may declare -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "at", "then"),
    [
        *(({"env": {name: ref()}}, f"spec.env.{name}: no {{env: {name}}} is in spec.site", "remove it")
          for name in PROGRAMS_READ),
        ({"env": {"A=B": ref()}}, "spec.env.A=B: a variable's name has letters", "give it another name"),
        ({"env": {"../x": ref()}}, "spec.env.../x: a variable's name", "give it another name"),
        ({"env": {"..": ref()}}, "spec.env...: a variable's name", "give it another name"),
        ({"env": {"A\nB": ref()}}, "spec.env.A\N{REPLACEMENT CHARACTER}B: ", "give it another name"),
        ({"files": {"../x": ref()}}, "spec.files.../x: a file's path is relative", "give it another path"),
        ({"files": {"/etc/x": ref()}}, "spec.files./etc/x: a file's path", "give it another path"),
        ({"files": {"..data/x": ref()}}, "spec.files...data/x: a file's path", "give it another path"),
        ({"files": {SITE: ref()}}, "spec.files.site.yaml: a file's path", "give it another path"),
        ({"files": {"x": ref("../../secrets/y")}}, "spec.files.x.secretKeyRef.name: an object's", "correct it"),
        ({"files": {"x": ref("..")}}, "spec.files.x.secretKeyRef.name: an object's name", "correct it"),
        ({"files": {"x": ref(key="../k")}}, "spec.files.x.secretKeyRef.key: a key has", "correct it"),
    ],
)  # fmt: skip
def test_what_a_site_may_not_declare_is_refused_before_a_job_is_made(
    spec: dict[str, Any], at: str, then: str
) -> None:
    why = unfit(site(**spec))
    assert why.startswith(at), why
    assert then in why


def test_what_its_references_and_the_vcenter_read_may_be_declared() -> None:
    own = {"site": "poc", "kubernetes_cluster": {"a": {"kubeconfig": {"env": "KUBE_a.b-c"}}}}
    env = {"KUBE_a.b-c": ref(), "GOVC_URL": ref(), "BFINFRA_VCENTER_PASSWORD": ref()}
    assert refusal(site(site=own, env=env, files={"certs/ca.pem": ref("a.b", "ca.crt")})) == ""


def test_a_watcher_refuses_the_same_and_reads_no_secret_for_it() -> None:
    class Api:
        def get(self, *words: str) -> None:
            raise AssertionError(words)

    with pytest.raises(BfinfraError, match=r"spec\.env\.LD_PRELOAD: no \{env: LD_PRELOAD\} is in spec\.site"):
        read(typing.cast("ClusterClient", Api()), site(env={"LD_PRELOAD": ref()}))


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (VARIABLE, ["A", "a_1", "A.b-c", "_"], ["", "1A", "A=B", "A B", "é", "-A", "A\n", "A/B", "A" * 129]),
        (FILE, ["a", "a/b.c", "_/-"], ["", "/a", "a/", ".a", "a/../b", "..", "a//b", "a b", "~", "a\n"]),
        (OBJECT, ["a", "a.b-c"], ["", "A", "a/b", "..", "-a", "a?b", "a%2f", "a" * 254]),
        (KEY, ["a", "A_b.c-d"], ["", "a/b", "a b", "a\n"]),
    ],
)
def test_the_rules_for_names_say_what_is_allowed(rule: Any, good: list[str], bad: list[str]) -> None:
    assert [each for each in good if not rule.fits(each)] == []
    assert [each for each in bad if rule.fits(each)] == []


# --- what a site may name --------------------------------------------------------------------------------


def spots(example: Path) -> list[tuple[Any, str, bool]]:
    """Where an example names a file or a secret, and whether it is a secret."""
    found = walk(bfinfra.load(example))
    return [(key, field, isinstance(value, Secret)) for (key, field), value in found]


def replaced(data: Any, key: Any, field: str, value: object) -> None:
    at = data[key.kind][key.name] if key else data
    *above, last = field.split(".")
    for name in above:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[int(last) if isinstance(at, list) else last] = value


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in range(1, len(ELSEWHERE)))]
)
def test_every_field_that_names_a_file_keeps_to_the_sites_own_folder(tmp_path: Path, number: int) -> None:
    tried = set()
    for example in EXAMPLES:
        data, wanted = yaml.load(example.read_text(), yaml.CBaseLoader), []
        for count, (key, field, secret) in enumerate(spots(example)):
            text = ELSEWHERE[(number + count) % len(ELSEWHERE)]
            replaced(data, key, field, {"file": text} if secret else text)
            tried.add((key.kind if key else "", re.sub(r"\d+", "N", field)))
            wanted.append(
                f"{text!r} leads out of the Site's own folder; write the path of one of its spec.files"
            )
        said = "\n".join(map(str, problems(contents(data), tmp_path / "own"))) if wanted else ""
        assert [words for words in wanted if words not in said] == [], (example, said)
    assert len(tried) > 25


@pytest.mark.parametrize("way", [{"command": ["touch", "canary"]}, {"keyring": "service/user"}])
def test_every_field_with_a_secret_runs_nothing(
    tmp_path: Path, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (name,), tried = way, 0
    assert name in RUN
    for example in EXAMPLES:
        data = yaml.load(example.read_text(), yaml.CBaseLoader)
        secrets = [(key, field) for key, field, secret in spots(example) if secret]
        for key, field in secrets:
            replaced(data, key, field, way)
        said = "\n".join(map(str, problems(contents(data), tmp_path / "own"))) if secrets else ""
        assert said.count(
            f"a Site can't have {{{name}: …}}: nothing that its author names is run here"
        ) == len(secrets), (example, said)
        tried += len(secrets)
    assert tried > 10
    assert not (tmp_path / "canary").exists()


def models(model: Any, found: set[Any]) -> set[Any]:
    """The model, and all that its fields are made of."""
    for field in model.model_fields.values():
        for each in parts(field.annotation):
            if isinstance(each, type) and issubclass(each, BaseModel) and each not in found:
                found.add(each)
                models(each, found)
    return found


def parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in typing.get_args(annotation):
        yield from parts(each)


def test_no_field_of_any_kind_is_a_path_of_this_machine_but_by_the_types_that_are_confined() -> None:
    named = []
    for name in registry.names():
        spec = registry.spec(name)
        for model in {spec, *models(spec, set())}:
            for field, info in model.model_fields.items():
                kinds = {each for each in parts(info.annotation) if isinstance(each, type)}
                assert not {each for each in kinds if issubclass(each, PurePath)}, (name, model, field)
                if kinds & {LocalFile, LocalOutput, Secret}:
                    named.append((name, model, field))
    assert len(named) > 40


def test_the_server_checks_each_of_these_fields_by_the_same_pattern() -> None:
    crd = yaml.load((ROOT / "deploy/operator/crd.yaml").read_text(), yaml.CSafeLoader)
    editors = json.loads((ROOT / "specs/site.schema.json").read_text())

    def count(node: Any, is_one: Any) -> int:
        if isinstance(node, list):
            return sum(count(each, is_one) for each in node)
        if not isinstance(node, dict):
            return 0
        return bool(is_one(node)) + sum(count(each, is_one) for each in node.values())

    files = count(editors, lambda node: node.get("x-file"))
    assert files > 20
    assert count(crd, lambda node: node.get("pattern") == BELOW) >= files
    secrets = count(crd, lambda node: node.keys() >= {"env", "file"} and node["file"].get("pattern") == BELOW)
    assert secrets == count(crd, lambda node: node.keys() == {"env", "file"}) > 10


GOOD = ("a", "certs/ca.pem", "./certs/ca.pem", "a b/ü+@.ova", ".hidden", "a//b", "folder/", "a..b/c...", "-x")


@pytest.mark.parametrize("text", GOOD)
def test_a_path_below_the_folder_is_taken_as_it_is(tmp_path: Path, text: str) -> None:
    assert Sources(tmp_path, {}, confined=True).path(text) == tmp_path / text
    assert Sources(tmp_path, {}, confined=True).made(text) == tmp_path / text


def test_no_path_that_is_taken_leads_out_of_the_folder() -> None:
    base, parts, taken = (
        Path("/nowhere/own"),
        ("..", ".", "", "a", "~", "..data", "\0", "$HOME", "...", "~a"),
        0,
    )
    sources = Sources(base, {}, confined=True)
    for length in (1, 2, 3, 4):
        for text in map("/".join, itertools.product(parts, repeat=length)):
            with contextlib.suppress(ValueError):
                for found in (sources.path(text), sources.made(text)):
                    assert Path(os.path.normpath(found)).is_relative_to(base), text
                    assert ".." not in found.parts, text
                taken += 1
    assert taken > 300


def test_a_users_own_site_names_what_it_likes(tmp_path: Path) -> None:
    assert Sources(tmp_path, {}).path("/etc/passwd") == Path("/etc/passwd")
    assert Sources(tmp_path, {}).path("~/x") == Path.home() / "x"


# --- what a kubeconfig names -----------------------------------------------------------------------------


def config(user: Mapping[str, str], **cluster: str) -> str:
    return json.dumps(
        {
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://h:6443", **cluster}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
    )


@pytest.mark.parametrize("text", ["/etc/passwd", "~/x", "../../x", "../../other/token", "/own/../etc/passwd"])
@pytest.mark.parametrize("field", ["tokenFile", "client-certificate", "client-key", "certificate-authority"])
@pytest.mark.parametrize("way", ["file", "env"])
def test_a_kubeconfig_names_no_file_outside_of_the_sites_folder(
    tmp_path: Path, field: str, text: str, way: str
) -> None:
    for name in ("x", "other/token"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("the token of another")
    user = {"token": "t"} if field == "certificate-authority" else {field: text}
    written = config(user, **({field: text} if field == "certificate-authority" else {}))
    (tmp_path / "own/kube").mkdir(parents=True)
    (tmp_path / "own/kube/config").write_text(written)
    sources = Sources(tmp_path / "own", {"K": written}, confined=True)
    secret = Secret(way, "kube/config" if way == "file" else "K", sources)
    with pytest.raises(BfinfraError) as caught:
        kubeconfig.read(secret)
    assert re.search(r"outside of the Site's own folder|names the relative file", str(caught.value))
    assert "embed the content" in str(caught.value)


def test_a_kubeconfig_names_files_beside_it_and_elsewhere_in_the_sites_folder(tmp_path: Path) -> None:
    found = Contents({}, {"kube/config": config({"tokenFile": "../tokens/t"}).encode(), "tokens/t": b"t0k"})
    found._write(tmp_path / "own")
    secret = Secret("file", "kube/config", Sources(tmp_path / "own", {}, confined=True))
    assert kubeconfig.read(secret).token == "t0k"


@pytest.mark.parametrize("user", [{"exec": {"command": "touch"}}, {"auth-provider": {"name": "gcp"}}])
def test_a_kubeconfig_runs_nothing(user: dict[str, Any]) -> None:
    with pytest.raises(BfinfraError, match="it would run a p"):
        kubeconfig.read(Secret("env", "K", Sources(env={"K": config(user)}, confined=True)))


# --- variables -------------------------------------------------------------------------------------------


def test_a_declared_variable_is_the_sites_and_never_the_processs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHERS", "of the process")
    own = {"site": "poc", "pepper": {"env": "OTHERS"}}
    found = contents(own).load(tmp_path / "own")
    assert [each.problem.why for each in found.warnings] == ["the environment variable OTHERS is not set"]
    assert found.pepper is not None
    with pytest.raises(BfinfraError, match="OTHERS is not set"):
        found.pepper.reveal()
    found = Contents({"OTHERS": "declared"}, contents(own).files).load(tmp_path / "own")
    assert found.pepper is not None
    assert found.pepper.reveal() == "declared"
    assert os.environ["OTHERS"] == "of the process"


def test_no_account_of_the_process_is_sent_to_a_vcenter_that_a_site_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOVC_PASSWORD", "the watcher's")
    monkeypatch.setenv("GOVC_USERNAME", "watcher")
    own = contents({"site": "poc", "vcenter": {"server": "attacker.test", "username": "x"}})
    settings = own.load(tmp_path / "own").vcenter
    assert settings is not None
    with pytest.raises(BfinfraError, match="no password for vCenter"):
        credentials(settings)
    settings = Contents({"GOVC_PASSWORD": "its own"}, own.files).load(tmp_path / "own").vcenter
    assert settings is not None
    assert credentials(settings).password.reveal() == "its own"
    users = bfinfra.load(tmp_path / "own" / SITE).vcenter
    assert users is not None
    assert users.env is os.environ


# --- its folder ------------------------------------------------------------------------------------------


def test_its_folder_holds_what_it_declares_and_nobody_writes_to_it(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "left").mkdir(parents=True)
    (own / "left/over").write_text("of an earlier check")
    contents({"site": "poc"}, **{"certs/ca.pem": "pem"}).load(own)
    assert sorted(str(each.relative_to(own)) for each in own.rglob("*")) == ["certs", "certs/ca.pem", SITE]
    assert {oct(each.stat().st_mode & 0o777) for each in (own, own / "certs")} == {"0o500"}
    assert (own / "certs/ca.pem").stat().st_mode & 0o777 == 0o600
    remove(own)
    assert not own.exists()


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("x")
    (tmp_path / "own").symlink_to("precious")
    with pytest.raises(BfinfraError, match="the Site's files can't be written; File exists"):
        contents({"site": "poc"}).load(tmp_path / "own")
    assert (tmp_path / "precious/file").read_text() == "x"


def test_files_that_no_folder_can_hold_together_are_named(tmp_path: Path) -> None:
    with pytest.raises(BfinfraError, match=r"own/a: the Site's files can't be written; .* a path of its own"):
        contents({"site": "poc"}, **{"a": "b", "a/c": "d"}).load(tmp_path / "own")


def volume(folder: Path, files: Mapping[str, str]) -> Path:
    project(folder, {SITE: b'{"site": "poc"}', **{name: text.encode() for name, text in files.items()}})
    return folder


def test_the_kubelets_own_links_are_followed(tmp_path: Path) -> None:
    site = volume(tmp_path / "site", {"certs/ca.pem": "pem", "a": "b"})
    project(tmp_path / "variables", {"PW": b"secret", "A.b": b"c\n"})
    found = mounted(site / SITE, tmp_path / "variables")
    assert found.files == {SITE: b'{"site": "poc"}', "certs/ca.pem": b"pem", "a": b"b"}
    assert found.env == {"PW": "secret", "A.b": "c\n"}


def test_a_volume_that_the_kubelet_renews_meanwhile_is_read_whole_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = volume(tmp_path / "site", {"a": "old", "b": "old"})
    real, renewed = os.fwalk, []

    def walk(*words: Any, **more: Any) -> Iterator[Any]:
        for each in real(*words, **more):
            yield each
            if not renewed:  # the kubelet exchanges its link, and removes what it led to
                renewed.append(1)
                new = site / "..2027_01_02"
                shutil.copytree(site / CURRENT, new)
                (new / "a").chmod(0o600)
                (new / "a").write_text("new")
                (site / "..next").symlink_to("..2027_01_02")
                (site / "..next").replace(site / "..data")

    monkeypatch.setattr(os, "fwalk", walk)
    assert mounted(site / SITE).files["a"] == b"new"


@pytest.mark.parametrize("link", ["/etc/passwd", "../../outside", "../../secret", "a", "../.."])
@pytest.mark.parametrize("at", ["certs/ca.pem", "x"])
def test_no_other_link_is_followed_wherever_it_leads(tmp_path: Path, link: str, at: str) -> None:
    (tmp_path / "secret").write_text("of another Site")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x").write_text("of another Site")
    site = volume(tmp_path / "site", {"certs/a": "b"})
    (site / CURRENT / at).symlink_to(link)
    with pytest.raises(BfinfraError) as caught:
        mounted(site / SITE)
    assert str(caught.value) == (
        f"{site / at}: a file of the Site can't be used; it is a link; bring it as one of spec.files"
    )


@pytest.mark.parametrize("data", ["/etc", "../other", "..", "certs", "..data/../.."])
def test_a_link_that_the_kubelet_does_not_make_is_refused(tmp_path: Path, data: str) -> None:
    site = volume(tmp_path / "site", {"certs/a": "b"})
    (site / "..data").unlink()
    (site / "..data").symlink_to(data)
    with pytest.raises(BfinfraError, match="it is a link that the kubelet does not make"):
        mounted(site / SITE)


@pytest.mark.parametrize("at", ["", CURRENT])
def test_a_volume_that_is_a_link_itself_is_refused(tmp_path: Path, at: str) -> None:
    """The volume's folder, and the one in it to which the kubelet's own link leads."""
    folder = volume(tmp_path / "site", {"a": "b"}) / at
    folder.rename(tmp_path / "content")
    folder.symlink_to(tmp_path / "content")
    with pytest.raises(BfinfraError, match="a file of the Site can't be used; Not a directory"):
        mounted(tmp_path / "site" / SITE)


def test_no_value_is_shown_with_what_a_site_has_declared() -> None:
    assert repr(Contents({"TOKEN": "pw-1"}, {"a.pem": b"pw-2"})) == "Contents(TOKEN, a.pem)"


@pytest.mark.parametrize("exchanged", [("a", "secret"), ("certs", "outside")])
def test_what_becomes_a_link_after_it_was_listed_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanged: tuple[str, str]
) -> None:
    (tmp_path / "secret").write_text("of another Site")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/ca.pem").write_text("of another Site")
    real = os.open
    site, (name, to) = volume(tmp_path / "site", {"a": "b", "certs/ca.pem": "pem"}), exchanged
    victim = site / CURRENT / name

    def opened(path: Any, *words: Any, **more: Any) -> int:
        if path == name and not victim.is_symlink():
            victim.rename(tmp_path / "was")
            victim.symlink_to(tmp_path / to)
        return real(path, *words, **more)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(BfinfraError, match="it is a link"):
        mounted(site / SITE)
    assert victim.is_symlink()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    site = volume(tmp_path / "site", {"a": "b"})
    os.mkfifo(site / CURRENT / "pipe")
    with pytest.raises(
        BfinfraError, match="pipe: a file of the Site can't be used; it is not a regular file"
    ):
        mounted(site / SITE)


def test_files_without_a_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bfinfra.operator.declared.LARGEST", 1 << 20)
    site = volume(tmp_path / "site", {"a": "b" * (700 << 10), "c": "d" * (700 << 10)})
    with pytest.raises(BfinfraError, match="the files have more than 1 MiB in all"):
        mounted(site / SITE)


def test_a_variable_that_is_no_text_and_a_volume_that_is_missing_are_named(tmp_path: Path) -> None:
    site = volume(tmp_path / "site", {})
    project(tmp_path / "variables", {"PW": b"\xff"})
    with pytest.raises(BfinfraError, match="the variable PW is not UTF-8 text; give it text"):
        mounted(site / SITE, tmp_path / "variables")
    with pytest.raises(BfinfraError, match=r"nowhere: a file of the Site can't be used; No such file"):
        mounted(site / SITE, tmp_path / "nowhere")
    with pytest.raises(BfinfraError, match=r"other\.yaml: there is no site"):
        mounted(site / "other.yaml")


# --- a Job as a process ----------------------------------------------------------------------------------

CANARY = "import os, pathlib; pathlib.Path(os.environ.get('CANARY', {canary!r})).touch()\n"


@dataclass
class Started:
    """A Site's Job, as the kubelet would run it, and what would show that something else was run."""

    pod: Pod
    canary: Path

    def result(self, cwd: Path | None = None) -> tuple[str, str]:
        code, text = self.pod.run(cwd)
        found = json.loads(text)
        assert code == 0
        return found["outcome"], found["why"]


def started(folder: Path, wanted: Desired, values: Mapping[str, str]) -> Started:
    """`values`: of the keys of the Secret s."""
    body = manifest(wanted, "poc-1", Mould("registry.test/bfinfra:1"))["spec"]["template"]
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    pod = Pod(body, lambda kind, name: {"data": data}, folder / "pod")
    pod.prepare()
    return Started(pod, folder / "canary")


def test_a_job_has_no_variable_and_no_module_of_its_site(tmp_path: Path) -> None:
    """Everything at once: variables that programs read, modules that Python would find, settings of programs in
    its folder and in the claim that it keeps.
    """
    canary = CANARY.format(canary=str(tmp_path / "canary"))
    modules = ["sitecustomize.py", "usercustomize.py", "yaml.py", "json.py", "x.pth", "bfinfra/__init__.py"]
    settings = [
        "ansible.cfg",
        "pyvenv.cfg",
        "kube/config",
        "plugins/a/plugin.yaml",
        "ssh/config",
        "openssl.cnf",
    ]
    values = {"code": canary, "path": "/site:/own/site", "token": "t0k"}
    used = {f"t{n}": {"kubeconfig": {"env": name}} for n, name in enumerate(PROGRAMS_READ)}
    own = {"site": "poc", "pepper": {"env": "PYTHONPATH"}, "kubernetes_cluster": used}
    wanted = site(
        site=own,
        claim="kept",
        env={name: ref(key="path") for name in PROGRAMS_READ},
        files={name: ref(key="code") for name in (*modules, *settings)},
    )
    assert unfit(wanted) == ""  # each is a secret that the site names
    job = started(tmp_path, wanted, values)
    mounts = job.pod.mounts
    packages = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (mounts["/state"] / packages).mkdir(parents=True)  # what another pod with the claim has left there
    (mounts["/state"] / packages / "usercustomize.py").write_text(canary)
    outcome, why = job.result(mounts["/site"])
    assert outcome == "Unreadable"  # each is read, as what it is: no kubeconfig
    assert "the kubeconfig {env: PYTHONPATH} can't be used; it is not of kind Config" in why
    assert not job.canary.exists()
    variables = {each["name"]: job.pod.here(each["value"]) for each in job.pod.container["env"]}
    own, kept = (str(mounts[each]) for each in ("/scratch", "/state"))
    assert variables == {"BFINFRA_STATE_HOME": kept, "HOME": own, "TMPDIR": own}


def test_the_image_starts_python_so_that_no_variable_changes_what_it_imports(tmp_path: Path) -> None:
    """Nor a folder that it is started in, if somebody who may write pods gives them."""
    (tmp_path / "sitecustomize.py").write_text(CANARY.format(canary=str(tmp_path / "canary")))
    job = started(tmp_path, site(), {})
    job.pod.env = {"PYTHONPATH": str(tmp_path)}
    assert job.result(tmp_path) == ("Agreed", "")
    assert not job.canary.exists()


def test_a_job_refuses_in_words_what_the_server_would_have_refused(tmp_path: Path) -> None:
    run = {"command": ["touch", str(tmp_path / "canary")]}
    job = started(tmp_path, site(site={"site": "poc", "pepper": run}), {})
    outcome, why = job.result()
    assert outcome == "Invalid"
    assert "pepper: a Site can't have {command: …}" in why
    assert not job.canary.exists()
