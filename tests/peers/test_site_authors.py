"""What another team's author of Sites can reach, on a real kube-apiserver: nothing but what the Site declares. Each
try ends in words, by the API server, by the operator, or by the Site's own Job or watcher, which run as processes.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from peers.found import Peers
from peers.test_operator import Desk, crd, desk, watchers

from bfinfra.model.sources import BELOW
from bfinfra.operator.desired import Desired
from bfinfra.operator.job import unfit

__all__ = ["crd", "desk", "watchers"]  # fixtures
ROOT = Path(__file__).parents[2]
ONCE = "operators"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
SECRET = {"secretKeyRef": {"name": "own", "key": "code"}}
SERVER = {"server": "https://127.0.0.1:9"}


def config(user: Mapping[str, Any], **cluster: str) -> str:
    return json.dumps(
        {
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {**SERVER, **cluster}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
    )


@dataclass(frozen=True)
class Try:
    """`server`: what the API server says, "" if it takes it; `then`: what the condition Ready says, "" if the Site
    is kept as any other; `jobs`: how many Jobs are made for it.
    """

    what: str
    spec: Mapping[str, Any]
    server: str = ""
    then: str = ""
    jobs: int = 1
    strict: bool = False


def site(**fields: Any) -> dict[str, Any]:
    return {"site": fields}


def example(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """The kind's example, with fields of this resource replaced; its files are declared."""
    data = yaml.safe_load((ROOT / f"specs/kinds/{kind}.yaml").read_text())
    data[kind][name] |= fields
    return {"site": data, "env": {"VCENTER_PASSWORD": SECRET}, "files": {"ca.pem": SECRET}}


def cluster(key: str) -> dict[str, Any]:
    """A Site of a cluster with the kubeconfig of this key of the author's Secret."""
    named = {"kubeconfig": {"file": "kube/config"}}
    spec = site(kubernetes_cluster={"a": named}, namespace={"n": {"cluster": "a"}})
    return {**spec, "files": {"kube/config": {"secretKeyRef": {"name": "own", "key": key}}}}


PATTERN = "should match"
OUTSIDE = "leads out of the Site's own folder; write the path of one of its spec.files"
TRIES = [
    Try(
        "PYTHONPATH beside a sitecustomize.py",
        {**site(), "env": {"PYTHONPATH": SECRET}, "files": {"sitecustomize.py": SECRET}},
        then=r"spec.env.PYTHONPATH: no {env: PYTHONPATH} is in spec.site, .*; remove it, or write the reference",
        jobs=0,
    ),
    Try(
        "the same, named by a reference",
        {
            **site(pepper={"env": "PYTHONPATH"}),
            "env": {"PYTHONPATH": {"secretKeyRef": {"name": "own", "key": "path"}}},
            "files": {"sitecustomize.py": SECRET, "yaml.py": SECRET, "x.pth": SECRET},
        },
    ),
    Try("LD_PRELOAD", {**site(), "env": {"LD_PRELOAD": SECRET}}, then="spec.env.LD_PRELOAD: no", jobs=0),
    Try("a variable's name that is none", {**site(), "env": {"A=B": SECRET}}, server="a variable's name has"),
    Try(
        "a variable's name that is a path",
        {**site(), "env": {"../x": SECRET}},
        server="a variable's name has",
    ),
    Try("a file above its folder", {**site(), "files": {"../x": SECRET}}, server="a file's path is relative"),
    Try("an absolute file", {**site(), "files": {"/etc/x": SECRET}}, server="a file's path is relative"),
    Try(
        "the kubelet's own link",
        {**site(), "files": {"..data/x": SECRET}},
        server="a file's path is relative",
    ),
    Try("another site.yaml", {**site(), "files": {"site.yaml": SECRET}}, server="and not site.yaml"),
    Try(
        "/etc/passwd as authority",
        site(vcenter={"server": "v", "trust": {"ca_file": "/etc/passwd"}}),
        PATTERN,
    ),
    Try("the account's token", site(pepper={"file": TOKEN}), PATTERN),
    Try("/proc/self/environ", site(pepper={"file": "/proc/self/environ"}), PATTERN),
    Try("another Site's folder", site(pepper={"file": "../uid-of-another/site.yaml"}), PATTERN),
    Try("a home folder", site(pepper={"file": "~/.kube/config"}), PATTERN),
    Try("a command", site(pepper={"command": ["touch", "CANARY"]}), "oneOf|Required value|unknown field"),
    Try("a keyring", site(pepper={"keyring": "a/b"}), "oneOf|Required value|unknown field"),
    Try(
        "a command in a field of two types",
        example("service_vm", "dl-01", properties={"p": {"command": ["touch", "CANARY"]}}),
        then=r"service_vm/dl-01: .*a Site can't have {command: …}: nothing that its author names is run here; write",
    ),
    Try(
        "a file in a field of two types",
        example("service_vm", "dl-01", properties={"p": {"file": TOKEN}}),
        then=rf"service_vm/dl-01: .*'{TOKEN}' {OUTSIDE}",
    ),
    Try(
        "a kubeconfig's tokenFile",
        cluster("by-file"),
        then=rf"it names the file {TOKEN}, which is outside of",
    ),
    Try(
        "a kubeconfig's authority", cluster("by-ca"), then="it names the file .*/passwd, which is outside of"
    ),
    Try("a kubeconfig's program", cluster("by-exec"), then="it uses exec: it would run a program"),
    Try("no password, to take the operator's", site(vcenter={"server": "127.0.0.1:9", "username": "x"})),
    Try(
        "another object by a Secret's name",
        {**site(), "files": {"x": {"secretKeyRef": {"name": "../../kube-system/secrets/x", "key": "k"}}}},
        PATTERN,
    ),
    Try("a claim's name that is a path", {**site(), "claim": "../x"}, PATTERN),
    Try("a name that begins with a dash", site(site="--destroy"), PATTERN),
    Try(
        "a Secret of another namespace",
        {
            **site(),
            "files": {"x": {"secretKeyRef": {"name": "own", "key": "code", "namespace": "kube-system"}}},
        },
        'unknown field "spec.files.x.secretKeyRef.namespace"',
        strict=True,
    ),
    *(
        Try(f"the pod's {name}", {**site(), name: value}, f'unknown field "spec.{name}"', strict=True)
        for name, value in {
            "serviceAccountName": "bfinfra-operator",
            "image": "attacker.test/x",
            "args": ["--help"],
            "volumes": [{"name": "x", "hostPath": {"path": "/"}}],
            "nodeSelector": {"a": "b"},
            "hostNetwork": True,
        }.items()
    ),
    Try(
        "the same without the client's check",
        {
            **site(),
            "serviceAccountName": "bfinfra-operator",
            "volumes": [{"name": "x", "hostPath": {"path": "/"}}],
        },
    ),
]


@dataclass
class Author:
    """Another team's: whatever it wants with Sites, ConfigMaps and Secrets of its namespace, and nothing else."""

    desk: Desk
    kubeconfig: Path
    canary: Path
    table: list[tuple[str, str, str]] = field(default_factory=list)

    def types(self, *words: str, given: str = "") -> tuple[bool, str]:
        """kubectl: whether it went well, and what it says."""
        command = [
            self.desk.peers.bin / "kubectl",
            "--kubeconfig",
            self.kubeconfig,
            *words,
            "-n",
            self.desk.space,
        ]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        return done.returncode == 0, " ".join((done.stdout + done.stderr).split())

    def tries(self, number: int, one: Try) -> bool:
        """Whether the API server takes it."""
        name = f"t-{number}"
        spec = json.loads(json.dumps(one.spec).replace("CANARY", str(self.canary)))
        spec["site"] = {**spec["site"], "site": spec["site"].get("site", name)}
        if spec["site"]["site"] == "example":
            spec["site"]["site"] = name
        body = {"apiVersion": "bfinfra.io/v1alpha1", "kind": "Site", "metadata": {"name": name}, "spec": spec}
        how = "strict" if one.strict else "ignore"
        taken, said = self.types("create", f"--validate={how}", "-f", "-", given=json.dumps(body))
        assert taken == (not one.server), (one.what, said)
        if one.server:
            assert re.search(one.server, said), (one.what, said)
            self.table.append((one.what, said, "-"))
        return taken

    def ready(self, number: int) -> dict[str, str]:
        found = json.loads(self.desk.kubectl("get", "site", f"t-{number}", "-o", "json"))
        conditions = found.get("status", {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == "Ready"), {})

    def reason(self, number: int) -> str:
        return self.ready(number).get("reason", "")


@pytest.fixture
def author(desk: Desk, tmp_path: Path) -> Iterator[Author]:
    role = [
        {"apiGroups": ["bfinfra.io"], "resources": ["sites"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    canary = tmp_path / "canary"
    code = f"import pathlib; pathlib.Path({str(canary)!r}).touch()\n"
    data = {
        "code": code,
        "path": "/site",
        "by-file": config({"tokenFile": TOKEN}),
        "by-ca": config({"token": "t"}, **{"certificate-authority": "/etc/passwd"}),
        "by-exec": config({"exec": {"apiVersion": "v1", "command": "touch", "args": [str(canary)]}}),
    }
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    account = {"kind": "ServiceAccount", "name": "author", "namespace": desk.space}
    made = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "author"}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "author"}, "rules": role},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "author"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "author"},
            "subjects": [account],
        },
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}, "data": encoded},
    ]
    desk.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(made))
    written = yaml.safe_load(desk.peers.kubeconfig.read_text())
    written["users"][0]["user"] = {"token": desk.kubectl("create", "token", "author").strip()}
    (tmp_path / "author.kubeconfig").write_text(yaml.safe_dump(written))
    yield Author(desk, tmp_path / "author.kubeconfig", canary)


def test_what_another_teams_author_tries_is_refused_in_words_or_has_no_effect(author: Author) -> None:
    desk = author.desk
    desk.start()
    taken = [number for number, one in enumerate(TRIES) if author.tries(number, one)]
    for number in taken:
        one = TRIES[number]
        desk.until(partial(author.reason, number))
        ready = author.ready(number)
        author.table.append((one.what, "taken", f"{ready['status']} {ready['reason']}: {ready['message']}"))
        assert re.search(one.then or r"resources are as the site says|can't be read", ready["message"]), ready
    jobs = json.loads(desk.kubectl("get", "jobs", "-o", "json"))["items"]
    owners = [each["metadata"]["ownerReferences"][0]["name"] for each in jobs]
    for number in taken:
        assert bool(owners.count(f"t-{number}")) == bool(TRIES[number].jobs), TRIES[number].what
    assert not author.canary.exists()
    for pod in json.loads(
        desk.kubectl("get", "pods", "-l", "app.kubernetes.io/component=look", "-o", "json")
    )["items"]:
        spec = pod["spec"]
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("default", False)
        assert not any("hostPath" in each for each in spec["volumes"])
        assert {each["name"] for each in spec["containers"][0]["env"]} == {
            "BFINFRA_STATE_HOME",
            "HOME",
            "TMPDIR",
        }
    said = desk.kubectl("get", "sites,jobs,pods,events", "-o", "yaml") + desk.logs()
    assert not re.search(r"root:[x*]:0:0", said)
    for words in (
        ("create", "job", "x", "--image=x"),
        ("run", "x", "--image=x"),
        ("create", "token", "default"),
    ):
        assert author.types(*words)[0] is False
    patch = '{"status": {"drift": {"found": [{"address": "$(HOME)"}]}}}'
    assert (
        "forbidden"
        in author.types("patch", "site", "t-1", "--subresource=status", "--type=merge", "-p", patch)[1]
    )
    (desk.folder / "tries.md").write_text("".join(f"| {' | '.join(row)} |\n" for row in author.table))


def test_a_watcher_reads_for_them_nothing_of_its_own(watchers: Desk, author: Author) -> None:
    desk = author.desk
    desk.start()
    desk.watcher("one")
    vcenter = site(
        vcenter={"server": "127.0.0.1:9", "username": "x"}, supervisor_namespace={"a": {"cluster": "c"}}
    )
    tries = [
        Try("a command", TRIES[16].spec, then="a Site can't have {command: …}"),
        Try("a file", TRIES[17].spec, then=OUTSIDE),
        Try("an account", vcenter, then="no password for vCenter"),
    ]
    for number, one in enumerate(tries):
        assert author.tries(number, Try(one.what, {**one.spec, "watch": True}))

    def why(number: int) -> str:
        found = json.loads(desk.kubectl("get", "site", f"t-{number}", "-o", "json"))
        return str((found.get("status", {}).get("watch") or {}).get("why", ""))

    for number, one in enumerate(tries):
        desk.until(partial(why, number))
        assert one.then in why(number)
    assert not author.canary.exists()


NAMES = ["A", "a.b-c", "_1", "1A", "A=B", "A B", "é", "-A", "..", "A/B", "A" * 128, "A" * 129, "PYTHONPATH"]
FILES = [
    "a",
    "a/b.c",
    "_/-",
    "/a",
    "a/",
    ".a",
    "a/../b",
    "..",
    "a//b",
    "a b",
    "~",
    "site.yaml",
    "a/site.yaml",
]
PATHS = [
    *FILES, "./a", "a/./b", "~/x", "./~x", "a/~", "..a", "a/..b", "a/..", "/", ".", "", "a/b/", "é +@", "a\nb", ".hidden/x",
]  # fmt: skip


def test_the_server_and_the_code_say_the_same_of_every_name(peers: Peers, desk: Desk) -> None:
    specs: list[tuple[dict[str, Any], bool]] = []

    def good(**spec: Any) -> bool:
        used = {"site": {"site": "poc", "a": [{"env": name} for name in spec.get("env", ())]}}
        meta = {"name": "x", "namespace": "ns", "uid": "u"}
        return not unfit(Desired.of({"metadata": meta, "spec": {**spec, **used}}))

    specs += [({"env": {name: SECRET}}, good(env={name: SECRET})) for name in NAMES]
    specs += [({"files": {name: SECRET}}, good(files={name: SECRET})) for name in FILES]
    for name in ("own", "a.b", "A", "a/b", "..", "-a", "a?b"):
        ref = {"a": {"secretKeyRef": {"name": name, "key": "k"}}}
        specs.append(({"files": ref}, good(files=ref)))
    for path in PATHS:
        allowed = re.fullmatch(BELOW, path) is not None
        specs.append(({"site": {"pepper": {"file": path}}}, allowed))
        trust = {"server": "v", "trust": {"ca_file": path}}
        specs.append(({"site": {"vcenter": trust}}, allowed))
    bodies = [
        {
            "apiVersion": "bfinfra.io/v1alpha1",
            "kind": "Site",
            "metadata": {"name": f"c-{number}"},
            "spec": {**spec, "site": {"site": f"c-{number}", **spec.get("site", {})}},
        }
        for number, (spec, _) in enumerate(specs)
    ]
    command = [
        peers.bin / "kubectl",
        "--kubeconfig",
        peers.kubeconfig,
        "create",
        "--dry-run=server",
        "-n",
        desk.space,
    ]
    done = subprocess.run(
        [*command, "-f", "-"], input=yaml.safe_dump_all(bodies), capture_output=True, text=True, check=False
    )
    taken = {int(number) for number in re.findall(r"site\.bfinfra\.io/c-(\d+) created", done.stdout)}
    wrong = [(spec, allowed) for n, (spec, allowed) in enumerate(specs) if (n in taken) != allowed]
    assert wrong == [], done.stderr
    assert 20 < len(taken) < len(specs) - 20
