"""A site in a folder of its own with one cluster by kubeconfig; plans, applies, and a look from the side."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kube_api import Api

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Report
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Item, Plan
from bfinfra.sandbox.factories.token import make_token
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.objects import name_of

QUICK = RetryPolicy(attempts=5, lasts=0, pause=0.01, longest=0.05)
PATIENT = RetryPolicy(lasts=30)
"""For a real cluster, in which other tests' definitions come and go."""
LONG = 120  # seconds that a resource may take: only a machine that does much else needs more than one


@dataclass(frozen=True)
class Begun:
    """What a first apply left: the site's name, its folder with what the machine remembers of it, its cluster."""

    name: str
    folder: Path
    cluster: Mapping[str, Any]


_begun: dict[str, Begun] = {}
OWN = ("kubeconfig", "token.tar", "token.tok")
"""Files of a site's folder that differ from test to test."""


class Site:
    """`resources` is what the site file holds besides the cluster `k` and the token `tok`; change it and plan
    again.
    """

    def __init__(self, folder: Path, api: Api, name: str = "") -> None:
        """`name`: that of the site; "" for one of its own, as real clusters serve several tests."""
        self.folder, self.name = folder, name or f"s-{uuid.uuid4().hex[:8]}"
        self.resources: dict[str, Any] = {}
        self._running = api.running
        (folder / "kubeconfig").write_text(json.dumps(api.config))
        self.token()

    def token(self, name: str = "first") -> None:
        """Another token under the same path."""
        make_token(self.folder / "token.tar", name=name)

    def plan(self, *, retry: RetryPolicy = QUICK, **how: Any) -> Plan:
        return bfinfra.plan(self._load(), context=bfinfra.RunContext(retry=retry), **how)

    def drift(self) -> Report:
        return bfinfra.drift(self._load(), context=bfinfra.RunContext(retry=QUICK))

    def item(self, address: str, **how: Any) -> Item:
        (item,) = [item for item in self.plan(**how).items if str(item.key) == address]
        return item

    def titles(self, address: str) -> list[str]:
        return [step.title() for step in self.item(address).steps]

    def apply(
        self, *, deadline: float = LONG, between: Callable[[], object] = lambda: None, **how: Any
    ) -> Outcome:
        """`between` happens after the plan was shown."""

        def every(plan: Plan) -> Allow:
            between()
            return Allow(
                every_delete=True, every_disruption=True, delete=frozenset(item.key for item in plan.items)
            )

        retry = QUICK if self._running else PATIENT
        options = Options(retry=retry, deadline=deadline)
        return bfinfra.apply(
            self._load(), approve=every, options=options, context=bfinfra.RunContext(retry=retry), **how
        )

    def applied(self, **how: Any) -> Outcome:
        """Apply, and insist that all went well."""
        outcome = self.apply(**how)
        bad = {
            str(key): f"{ended.ending}: {ended.problem}"
            for key, ended in outcome.endings.items()
            if ended.ending not in ("done", "kept")
        }
        assert not bad, bad
        return outcome

    def begun(self, gpus: object) -> None:
        """As its first apply leaves it on a new cluster of the sandbox, whose nodes have these GPUs. Sites of
        the same files are applied once; the others get a copy of what that left.
        """
        running = self._running
        assert running, "a real cluster can't be copied"
        key = self._digest(running, gpus)
        if (found := _begun.get(key)) is None:
            self.applied()
            running.cluster.clock.rest()
            kept = self.folder.with_name(f"begun-{len(_begun)}")
            shutil.copytree(self.folder, kept, ignore=shutil.ignore_patterns("kubeconfig"))
            _begun[key] = Begun(self.name, kept, running.save())
            return
        self.name = found.name
        shutil.copytree(found.folder, self.folder, dirs_exist_ok=True)
        running.cluster.clock.rest()
        running.restore(found.cluster)
        running.start()
        running.cluster.clock.rest()

    def _digest(self, running: RunningCluster, gpus: object) -> str:
        """Of the resources, of the files but what is each test's own, and of the cluster's nodes."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name not in OWN)
        nodes = [name_of(each) for each in running.cluster.store.all(("", "nodes"))]
        words = [json.dumps(self.resources), running.cluster.version, repr(gpus), *nodes]
        return hashlib.sha256(
            "\0".join([*words, *map(str, map(Path.read_bytes, files))]).encode()
        ).hexdigest()

    def _load(self) -> Any:
        given = {
            "site": self.name,
            "kubernetes_cluster": {"k": {"kubeconfig": {"file": "kubeconfig"}}},
            "bitfusion_token": {"tok": {"source": {"tar": "token.tar"}}},
            **self.resources,
        }
        (self.folder / "site.yaml").write_text(yaml.dump(given, Dumper=yaml.CSafeDumper))
        return bfinfra.load(self.folder / "site.yaml")
