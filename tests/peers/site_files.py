"""A site of specs/peers in a folder of the test's own, with the addresses of this run; and bfinfra on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Report
from bfinfra.model.events import Event
from bfinfra.model.outcome import Outcome
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.sandbox.factories.token import make_token

SPECS = Path(__file__).parents[2] / "specs"
RETRY = RetryPolicy(attempts=6, lasts=0, pause=0.05, longest=0.5)
RUN_CONTEXT = bfinfra.RunContext(retry=RETRY)


class SiteFile:
    """`given` is the site as a mapping; change it, and the next call writes it anew."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder, self.path = folder, folder / source.name
        self.given: dict[str, Any] = yaml.load(
            source.read_text(), yaml.BaseLoader
        )  # scalars stay text: 0x10de is no number

    def put(self, name: str, text: str) -> None:
        """A file beside the site's."""
        (self.folder / name).write_text(text)

    def take(self, source: str, name: str) -> None:
        """A file of specs/ beside the site's."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SPECS / source, target)

    def load(self) -> Any:
        """The site as bfinfra reads it."""
        self.path.write_text(yaml.safe_dump(self.given, sort_keys=False))
        return bfinfra.load(self.path)

    def plan(self) -> Plan:
        """What an apply would do, and what drift reports."""
        return bfinfra.plan(self.load(), context=RUN_CONTEXT)

    def changes(self) -> dict[str, set[str]]:
        """Address → the fields that differ; empty: all agrees."""
        found = self.plan()
        assert not found.problems, found.problems
        return fields(found)

    def drift(self) -> Report:
        """What the world moved, and who."""
        return bfinfra.drift(self.load(), context=RUN_CONTEXT)

    def apply(
        self, *, deadline: float = 30, on_event: Callable[[Event], None] = lambda _: None, **how: Any
    ) -> Outcome:
        """Everything is allowed."""
        options = Options(retry=RETRY, deadline=deadline)
        return bfinfra.apply(
            self.load(), approve=everything, options=options, on_event=on_event, context=RUN_CONTEXT, **how
        )


def everything(plan: Plan) -> Allow:
    return Allow(every_delete=True, every_disruption=True, delete=frozenset(item.key for item in plan.items))


def fields(plan: Plan) -> dict[str, set[str]]:
    return {
        str(item.key): {change.field for step in item.steps for change in step.changes}
        for item in plan.pending
    }


def endings(found: Outcome | Mapping[Key, Any]) -> dict[str, str]:
    """Address → how it ended, with why where it isn't well."""
    ended = found.endings if isinstance(found, Outcome) else found
    return {
        str(key): f"{each.ending}" + (f": {each.problem}" if each.problem else "")
        for key, each in ended.items()
    }


def all_are(found: Outcome | Mapping[Key, Any], *allowed: str) -> None:
    bad = {address: how for address, how in endings(found).items() if how not in allowed}
    assert not bad, bad


def kubernetes_site(folder: Path, own: str) -> SiteFile:
    """specs/peers/kubernetes.yaml with the test's own site name and namespaces; the kubeconfig is still to be
    put beside it.
    """
    site = SiteFile(SPECS / "peers/kubernetes.yaml", folder)
    site.given["site"] += f"-{own}"
    for space in site.given["namespace"].values():
        space["namespace"] = space.get("namespace", "") + f"-{own}"
    for name in ("train", "notebook"):
        site.take(f"peers/manifests/{name}.yaml", f"manifests/{name}.yaml")
    make_token(folder / "token.tar")
    site.put("registry.password", "hidden-4711")
    return site
