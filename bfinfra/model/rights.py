"""The rights that an action needs: privileges on vCenter's objects, rules of Kubernetes APIs. Kinds and steps
declare them (docs/how-to/give-least-privilege.md).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

VCENTER = "vcenter"
"""The place of a right that every survey needs: vCenter's root folder and all below it."""
CLUSTERS = "clusters"
"""The place of a right that every survey needs: each cluster of the site that the kind's references may
name.
"""
API = "api"
"""The word by which a kind that is a cluster names its own Kubernetes API."""
DATACENTER_FOLDERS = ("vm", "host", "datastore", "network")
"""A datacenter's own folders."""
READ = ("System.Anonymous", "System.Read", "System.View")
"""The privileges that every role includes, also the read-only one."""


class Use(enum.StrEnum):
    """The use that rights are for. An apply that also deletes or replaces needs those of destroy too."""

    PLAN = "plan"
    WATCH = "watch"
    APPLY = "apply"
    DESTROY = "destroy"


class Entity(NamedTuple):
    """An object of vCenter: its type, and its inventory path as govc writes it. `*` stands for parts that the
    site doesn't name.
    """

    path: str
    type: str
    propagate: bool = False
    """Whether its descendants need the same rights."""

    @property
    def alone(self) -> str:
        """Of a host whose cluster the site doesn't name: the path of its compute resource if it is in none.
        vCenter takes a standalone host's permissions only there (vSphere API, AuthorizationManager). Else "".
        """
        parts = self.path.split("/")
        if self.type != "HostSystem" or len(parts) < 5 or parts[-2] != "*":
            return ""
        return "/".join((*parts[:-2], parts[-1]))


@dataclass(frozen=True, slots=True)
class Api:
    """A Kubernetes API: the cluster's address in the site; one namespace, or "" for all; `names`: only these
    objects.
    """

    cluster: Key
    namespace: str = ""
    names: tuple[str, ...] = ()


Place = Entity | Api
PrivilegePlaces = Mapping[str, Sequence[Place]]
"""Word → places: what the words in a kind's rights stand for, for one resource."""
ROOT = Entity("/", "Folder", propagate=True)


@dataclass(frozen=True, slots=True)
class Privileges:
    """vCenter privileges, by their API ids, on a place."""

    on: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources (`secrets`, `jobs.batch`, `pods/log`) of a place. `optional`: what is lost without
    it, while the rest works.
    """

    on: str
    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    optional: str = ""


Right = Privileges | Rule


def holds(on: str, *names: str) -> Privileges:
    """`holds("host", "Host.Config.Maintenance")`."""
    return Privileges(on, names)


def may(verbs: str, resources: str, on: str, *, optional: str = "") -> Rule:
    """`may("get list", "secrets", "namespaces")`."""
    return Rule(on, tuple(verbs.split()), tuple(resources.split()), optional)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb on one resource."""

    resource: str
    verb: str
    optional: str = field(default="", compare=False)

    def __lt__(self, other: Verb) -> bool:
        return (self.resource, self.verb) < (other.resource, other.verb)


@dataclass(frozen=True)
class Rights:
    """All rights that a site needs: privileges by object, verbs by API, both sorted."""

    site: str
    uses: tuple[Use, ...]
    entities: Mapping[Entity, tuple[str, ...]]
    apis: Mapping[Api, tuple[Verb, ...]]


def path_in(datacenter: str, root: str, text: str) -> str:
    """The path of an object that a site names by its name or path. `root`: host, vm, datastore or network."""
    whole = text.startswith("/") and f"/{root}/" in f"{text}/"
    return text.rstrip("/") if whole else f"/{datacenter}/{root}/{text.strip('/')}".rstrip("/")
