"""An account of its own that is given rights by an administrator, with pyVmomi as shipped and plain HTTP: all
that bfinfra asks for, or all but one.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import re
import ssl
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from kinds.lifecycle import SPECS
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim, vmodl
from rights.life import kind_of, life_of

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.app import privileges
from bfinfra.model.rights import READ, Api, Entity, Rights, Use, Verb
from bfinfra.render.privileges import manifests, rules
from bfinfra.sandbox import Running

ACCOUNT = "svc@small.test"
POC = "singapore-poc"
ROBOT = "system:serviceaccount:default:bfinfra"
ENFORCED = ("kubernetes_cluster", "supervisor_namespace")
"""In a Tanzu cluster whoever may edit its namespace is administrator."""


@contextmanager
def world(folder: Path, name: str = "small") -> Iterator[Running]:
    """A world of specs/ with an account that may do nothing yet, and two networks."""
    found = yaml.safe_load((SPECS / f"worlds/{name}.yaml").read_text())
    found["users"].append({"name": ACCOUNT, "password": {"env": "VCENTER_PASSWORD"}, "role": []})
    found["networks"] = sorted({*found["networks"], "Storage Network"})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "world.yaml").write_text(yaml.safe_dump(found))
    running = sandboxes.start(folder / "world.yaml", folder / "state", pace=0)
    try:
        yield running
    finally:
        sandboxes.stop(folder / "state")


@dataclass(frozen=True)
class Site:
    """A kind's example, entered with the account's own name and token instead of the administrator's."""

    kind: str
    text: str
    folder: Path

    @classmethod
    def of(cls, kind: str, folder: Path, *changes: tuple[str, str]) -> Site:
        source = SPECS / f"kinds/{kind_of(kind)}.yaml" if kind != POC else SPECS / f"{POC}.yaml"
        text = (
            source.read_text()
            .replace("../manifests", str(SPECS / "manifests"))
            .replace(" manifests/", f" {SPECS}/manifests/")
            .replace(" sources/", f" {SPECS}/kinds/sources/")
        )
        own = f"access: [{{user: {ACCOUNT}, role: edit}}"
        text = (
            text.replace("access: [", f"{own}, ")
            if "access: [" in text
            else text.replace("cluster: compute\n", f"cluster: compute\n    {own}]\n")
        )
        return (
            cls(kind, text, folder)
            .by(ACCOUNT, f"{folder}/robot.kubeconfig")
            .but(*life_of(kind).example, *changes)
        )

    def by(self, account: str, kubeconfig: str) -> Site:
        """The same, entered by somebody else."""
        text = re.sub(r"(?<=\n  username: ).*", account, self.text)
        return replace(self, text=re.sub(r"(?<=kubeconfig: )\{file: .*?\}", f"{{file: {kubeconfig}}}", text))

    def but(self, *changes: tuple[str, str]) -> Site:
        text = self.text
        for before, after in changes:
            assert before in text, before
            text = text.replace(before, after)
        return replace(self, text=text)

    def path(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.kind}.yaml"
        path.write_text(self.text)
        return path

    def rights(self, sandbox: Running, *uses: Use) -> Rights:
        return privileges.privileges(bfinfra.load(self.path(), sandbox=sandbox), uses)


@contextmanager
def administrator(sandbox: Running) -> Iterator[Any]:
    """A pyVmomi session."""
    host, _, port = sandbox.clients["GOVC_URL"].removeprefix("https://").partition("/")[0].rpartition(":")
    trust = ssl.create_default_context(cafile=str(sandbox.ca_file))
    si = SmartConnect(
        host=host,
        port=int(port),
        user=sandbox.clients["GOVC_USERNAME"],
        pwd=sandbox.env["VCENTER_PASSWORD"],
        sslContext=trust,
    )
    try:
        yield si
    finally:
        Disconnect(si)


def paths(si: Any) -> dict[str, Any]:
    """Every entity by its inventory path."""
    view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.ManagedEntity], True)
    collector = vmodl.query.PropertyCollector
    way = collector.TraversalSpec(type=vim.view.ContainerView, path="view", skip=False)
    wanted = collector.PropertySpec(type=vim.ManagedEntity, pathSet=["name", "parent"])
    rows = si.content.propertyCollector.RetrieveContents(
        [
            collector.FilterSpec(
                objectSet=[collector.ObjectSpec(obj=view, skip=True, selectSet=[way])], propSet=[wanted]
            )
        ]
    )
    near = {row.obj: {each.name: each.val for each in row.propSet} for row in rows}

    def path(at: Any) -> str:
        return "" if at == si.content.rootFolder else f"{path(near[at]['parent'])}/{near[at]['name']}"

    return {"/": si.content.rootFolder, **{path(at): at for at in near}}


def grant(sandbox: Running, entities: Mapping[Entity, Iterable[str]], account: str = ACCOUNT) -> None:
    """A role for each object, given there and nowhere else."""
    with administrator(sandbox) as si:
        there, manager = paths(si), si.content.authorizationManager
        for index, (entity, names) in enumerate(entities.items()):
            role = manager.AddAuthorizationRole(
                f"bfinfra-{index}", [name for name in names if name not in READ]
            )
            fitting = [
                ref
                for path, ref in there.items()
                if path.count("/") == entity.path.count("/")
                and (path == "/") == (entity.path == "/")
                and fnmatch.fnmatchcase(path, entity.path)
            ]
            assert fitting, f"nothing is at {entity.path}"
            for ref in fitting:
                assert isinstance(ref, getattr(vim, entity.type)), (ref, entity)
                permission = vim.AuthorizationManager.Permission(
                    principal=account, group=False, roleId=role, propagate=entity.propagate
                )
                manager.SetEntityPermissions(ref, [permission])


class Kube:
    """The administrator of a cluster by kubeconfig, by plain HTTP."""

    def __init__(self, config: Mapping[str, Any], where: tuple[str, int]) -> None:
        user = config["users"][0]["user"]
        self.config, self.url = config, f"https://{where[0]}:{where[1]}"
        self.trust = ssl.create_default_context(cadata=_pem(config))
        self.trust.check_hostname = False
        self.headers = {"Authorization": f"Bearer {user['token']}"}

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        kind = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body else None, self.headers | kind, method=method
        )
        with urllib.request.urlopen(request, context=self.trust) as answer:
            return json.load(answer)

    def text(self, path: str) -> str:
        """What is no JSON: a log."""
        request = urllib.request.Request(self.url + path, headers=self.headers)
        with urllib.request.urlopen(request, context=self.trust) as answer:
            found: bytes = answer.read()
        return found.decode()

    def give(self, made: Iterable[Mapping[str, Any]]) -> None:
        """What kubectl would create."""
        for each in made:
            space = each["metadata"].get("namespace")
            self.call(
                "POST",
                (
                    f"/apis/{each['apiVersion']}{f'/namespaces/{space}' if space else ''}"
                    f"/{each['kind'].lower()}s"
                ),
                each,
            )

    def robot(self, path: Path) -> None:
        """A service account, and a kubeconfig with its token."""
        home = "/api/v1/namespaces/default/serviceaccounts"
        self.call("POST", home, {"metadata": {"name": "bfinfra"}})
        token = self.call("POST", f"{home}/bfinfra/token", {"spec": {"expirationSeconds": 3600}})["status"][
            "token"
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(
            json.dumps({**self.config, "users": [{**self.config["users"][0], "user": {"token": token}}]})
        )


def _pem(config: Mapping[str, Any]) -> str:
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def other(sandbox: Running, kubeconfig: str = "other.kubeconfig") -> Kube:
    """The administrator of the world's cluster that this file leads to."""
    config = json.loads((Path(sandbox.files) / kubeconfig).read_text())
    host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").rpartition(":")
    there = sandbox.lookup(host, int(port))
    assert there
    return Kube(config, there)


def by_kubeadm(sandbox: Running, machine: str) -> Kube:
    """The administrator of the cluster that was made on a Linux machine, by the kubeconfig that lies
    there.
    """
    config = yaml.safe_load(sandbox.world()["linux"][machine]["files"]["/etc/kubernetes/admin.conf"])
    host, _, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").rpartition(":")
    there = sandbox.lookup(host, int(port))
    assert there
    return Kube(config, there)


def supervisor(sandbox: Running, of: str = "COMPUTE") -> Kube:
    """Its administrator, logged in as kubectl vsphere login does. `of`: its cluster, as variables name it."""
    where, answer = _login(sandbox, {}, of)
    return _kube(answer["session_id"], sandbox.ca_file.read_bytes(), where)


def guest(sandbox: Running, namespace: str, name: str, of: str = "COMPUTE") -> Kube:
    """The administrator of a workload cluster that runs, logged in the same way."""
    _, answer = _login(sandbox, {"guest_cluster_name": name, "guest_cluster_namespace": namespace}, of)
    there = sandbox.lookup(answer["guest_cluster_server"], 6443)
    assert there
    return _kube(answer["session_id"], base64.b64decode(answer["guest_cluster_ca"]), there)


def _login(sandbox: Running, body: Mapping[str, str], of: str = "COMPUTE") -> tuple[tuple[str, int], Any]:
    host, _, port = sandbox.clients[f"SUPERVISOR_{of}"].rpartition(":")
    trust = ssl.create_default_context(cafile=str(sandbox.ca_file))
    trust.check_hostname = False
    basic = base64.b64encode(
        f"{sandbox.clients['GOVC_USERNAME']}:{sandbox.env['VCENTER_PASSWORD']}".encode()
    ).decode()
    request = urllib.request.Request(
        f"https://{host}:{port}/wcp/login",
        json.dumps(body).encode(),
        {"Authorization": f"Basic {basic}"},
        method="POST",
    )
    with urllib.request.urlopen(request, context=trust) as answer:
        return (host, int(port)), json.load(answer)


def _kube(token: str, authority: bytes, where: tuple[str, int]) -> Kube:
    data = base64.b64encode(authority).decode()
    return Kube(
        {
            "clusters": [{"cluster": {"certificate-authority-data": data}}],
            "users": [{"user": {"token": token}}],
        },
        where,
    )


def cut_down(kube: Kube, found: Iterable[Verb]) -> None:
    """Let edit, the role that a namespace's access gives, hold these rules and no others."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit"
    kube.call("PATCH", role, {"rules": rules(found)})


def give(sandbox: Running, site: Site, rights: Rights) -> None:
    """All these rights: on vCenter; in the cluster by kubeconfig to a service account whose token the site
    uses; on the supervisor by its edit role.
    """
    inside = [
        verb
        for api, verbs in rights.apis.items()
        if api.cluster.kind == "supervisor_namespace" and api.namespace
        for verb in verbs
    ]
    if inside:
        cut_down(supervisor(sandbox), inside)
    if rights.entities:
        grant(sandbox, rights.entities)
    for cluster in {api.cluster for api in rights.apis if api.cluster.kind == "kubernetes_cluster"}:
        kube = other(sandbox)
        kube.give(manifests(rights, ROBOT, cluster))
        kube.robot(site.folder / "robot.kubeconfig")


def without(rights: Rights, place: Entity | Api, name: str) -> Rights:
    """All but one: a privilege, or `verb resource`."""
    if isinstance(place, Entity):
        return replace(
            rights, entities={**rights.entities, place: tuple(n for n in rights.entities[place] if n != name)}
        )
    return replace(
        rights,
        apis={**rights.apis, place: tuple(v for v in rights.apis[place] if f"{v.verb} {v.resource}" != name)},
    )


def each_one(rights: Rights) -> list[tuple[Entity | Api, str]]:
    """Everything that can be taken away alone: what every role has can't be."""
    found: list[tuple[Entity | Api, str]] = [
        (entity, name) for entity, names in rights.entities.items() for name in names if name not in READ
    ]
    found += [
        (api, f"{v.verb} {v.resource}")
        for api, verbs in rights.apis.items()
        if api.cluster.kind in ENFORCED
        for v in verbs
        if not v.optional
    ]
    return found


def named(name: str) -> str:
    """How an error names it: a privilege by its id, `list jobs.batch` without the group."""
    return name.partition(".")[0] if " " in name else name
