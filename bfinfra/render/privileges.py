"""Rights for people, for programs, as govc commands and as Kubernetes manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bfinfra.formats import shell
from bfinfra.formats.yaml import dumped_all
from bfinfra.kinds import groups
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, Api, Rights, Verb
from bfinfra.render.data import document
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style

SUPERVISOR = "supervisor_namespace"
READS = ("get", "list", "watch")
RBAC = "rbac.authorization.k8s.io"
READ_ONLY = "ReadOnly"
"""vCenter's own role with only the privileges that every role has."""
Rule = dict[str, list[str]]


def text(rights: Rights, account: str, style: Style = PLAIN) -> str:
    """A paragraph for each object and each API."""
    *others, last = rights.uses
    uses = f"{', '.join(others)} and {last}" if others else last
    who = f"What {safe(account)} needs to {uses} {safe(rights.site)}"
    blocks = [style.paint(who, "bold")]
    blocks += [
        "\n".join(
            [
                style.paint(
                    f"vCenter: {safe(e.type)} {safe(e.path)}{', with all below it' if e.propagate else ''}",
                    "bold",
                ),
                *(f"  {name}" for name in names),
            ]
        )
        for e, names in rights.entities.items()
    ]
    blocks += [
        "\n".join([*_api(api, verbs, style), *_given(rights, api, account)])
        for api, verbs in rights.apis.items()
    ]
    if any("*" in entity.path for entity in rights.entities):
        blocks.append(
            "* stands for what the site doesn't name: datacenter, a host's cluster, a server's datastore. "
            "Write these to narrow it."
        )
    if any(entity.alone for entity in rights.entities):
        blocks.append(
            "A standalone host takes its permission on its compute resource, /DATACENTER/host/NAME; vCenter "
            "refuses it on the host."
        )
    return "\n\n".join(blocks)


def data(rights: Rights, account: str) -> dict[str, Any]:
    """The needs of an account as JSON: privileges by object, verbs by API."""
    return document(
        "privileges",
        site=rights.site,
        account=account,
        uses=[str(use) for use in rights.uses],
        vcenter=[
            {"object": e.type, "path": e.path, "propagate": e.propagate, "privileges": list(names)}
            for e, names in rights.entities.items()
        ],
        kubernetes=[
            {
                "cluster": str(api.cluster),
                "namespace": api.namespace,
                "names": list(api.names),
                "role": role(rights, api.cluster),
                "rules": [{"resource": v.resource, "verb": v.verb, "optional": v.optional} for v in verbs],
            }
            for api, verbs in rights.apis.items()
        ],
    )


def role_names(rights: Rights) -> dict[tuple[str, ...], str]:
    """Each set of privileges on vCenter's objects → the name of its role."""
    roles: dict[tuple[str, ...], str] = {READ: READ_ONLY}
    for entity, names in rights.entities.items():
        if names not in roles:
            place = "root" if entity.path == "/" else entity.type.lower()
            roles[names] = _named(f"bfinfra-{rights.site}-{place}", roles)
    return roles


def govc(rights: Rights, account: str) -> str:
    """A role for each set of privileges, then one permission for each object. An administrator runs it. A
    host that may be standalone has a second command, for vCenter refuses the first one there.
    """
    roles = role_names(rights)
    lines = [
        shell.line(["govc", "role.create", role, *(name for name in names if name not in READ)])
        for names, role in roles.items()
        if role != READ_ONLY
    ]
    for entity, names in rights.entities.items():
        options = (
            "-principal",
            account,
            "-role",
            roles[names],
            f"-propagate={str(entity.propagate).lower()}",
        )
        paths = filter(None, (entity.path, entity.alone))
        lines.append(" || ".join(shell.line(["govc", "permissions.set", *options, path]) for path in paths))
    return "\n".join(lines)


def manifest(rights: Rights, account: str, cluster: Key) -> str:
    """The YAML that kubectl applies."""
    return dumped_all(manifests(rights, account, cluster)).rstrip()


def manifests(rights: Rights, account: str, cluster: Key) -> list[dict[str, Any]]:
    """Roles and their bindings in one cluster; () for a supervisor, where vSphere grants rights by
    `access`.
    """
    name = f"bfinfra-{rights.site}"
    who = f"sso:{account}" if groups().get(cluster.kind) == "supervisor" else account
    spaces: dict[str, list[Rule]] = {}
    for api, verbs in rights.apis.items():
        if api.cluster == cluster and cluster.kind != SUPERVISOR:
            spaces.setdefault(api.namespace, []).extend(rules(verbs, api.names))
    return [made for space, found in sorted(spaces.items()) for made in _role(name, space, found, who)]


def clusters(rights: Rights) -> list[Key]:
    """The clusters whose rights a manifest can grant."""
    return list(dict.fromkeys(api.cluster for api in rights.apis if api.cluster.kind != SUPERVISOR))


def rules(verbs: Iterable[Verb], names: tuple[str, ...] = ()) -> list[Rule]:
    """The rights as RBAC writes them: one rule for all resources of a group with the same verbs."""
    by_resource: dict[str, list[str]] = {}
    for verb in verbs:
        by_resource.setdefault(verb.resource, []).append(verb.verb)
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for resource, found in by_resource.items():
        plural, _, group = resource.partition(".")
        grouped.setdefault((group, tuple(found)), []).append(plural)
    named = {"resourceNames": list(names)} if names else {}
    return [
        {"apiGroups": [group], "resources": plurals, "verbs": list(found), **named}
        for (group, found), plurals in grouped.items()
    ]


def role(rights: Rights, cluster: Key) -> str:
    """The least role of a supervisor namespace's `access` that includes what is needed; "" for other
    clusters.
    """
    if cluster.kind != SUPERVISOR:
        return ""
    inside = [
        v for api, verbs in rights.apis.items() if api.cluster == cluster and api.namespace for v in verbs
    ]
    return "view" if all(v.verb in READS and v.resource != "secrets" for v in inside) else "edit"


def _api(api: Api, verbs: tuple[Verb, ...], style: Style) -> Iterator[str]:
    where = (
        f", namespace {safe(api.namespace)}"
        if api.namespace
        else f", only {', '.join(map(safe, api.names))}"
        if api.names
        else ", all namespaces"
    )
    yield style.paint(f"Kubernetes: {safe(api.cluster)}{where}", "bold")
    found: dict[str, list[Verb]] = {}
    for verb in verbs:
        found.setdefault(verb.resource, []).append(verb)
    for resource, each in found.items():
        optional = f"  (optional: without it, {each[0].optional})" if all(v.optional for v in each) else ""
        yield f"  {resource}: {', '.join(v.verb for v in each)}{optional}"


def _given(rights: Rights, api: Api, account: str) -> Iterator[str]:
    """Yield how to grant it on a supervisor, where roles can't be created."""
    if api.cluster.kind == SUPERVISOR:
        yield (
            "  granted by the namespace's access: "
            f"{{user: {safe(account)}, role: {role(rights, api.cluster)}}}"
            if api.namespace
            else "  every account that may log in to the supervisor has it"
        )


def _named(name: str, roles: Mapping[tuple[str, ...], str]) -> str:
    """The first role of a type of object is named after it; the others get numbers."""
    same = sum(each.startswith(name) for each in roles.values())
    return f"{name}-{same + 1}" if same else name


def _role(name: str, space: str, found: list[Rule], who: str) -> Iterator[dict[str, Any]]:
    kind, home = ("Role", {"namespace": space}) if space else ("ClusterRole", {})
    metadata = {"name": name, **home}
    yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": found}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": who}],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
    }
