"""A site in a folder of its own with one cluster by kubeconfig; plans, applies, and a look from the side."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
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

QUICK = RetryPolicy(attempts=5, lasts=0, pause=0.01, longest=0.05)
LONG = 120  # seconds that a resource may take: only a machine that does much else needs more than one


class Site:
    """`resources` is what the site file holds besides the cluster `k` and the token `tok`; change it and plan
    again.
    """

    def __init__(self, folder: Path, api: Api, name: str = "") -> None:
        """`name`: that of the site; "" for one of its own, as real clusters serve several tests."""
        self.folder, self.name = folder, name or f"s-{uuid.uuid4().hex[:8]}"
        self.resources: dict[str, Any] = {}
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

        options = Options(retry=QUICK, deadline=deadline)
        return bfinfra.apply(
            self._load(), approve=every, options=options, context=bfinfra.RunContext(retry=QUICK), **how
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

    def _load(self) -> Any:
        given = {
            "site": self.name,
            "kubernetes_cluster": {"k": {"kubeconfig": {"file": "kubeconfig"}}},
            "bitfusion_token": {"tok": {"source": {"tar": "token.tar"}}},
            **self.resources,
        }
        (self.folder / "site.yaml").write_text(yaml.safe_dump(given))
        return bfinfra.load(self.folder / "site.yaml")
