"""One declarative file for GPU sites on vSphere and Tanzu.

    import bfinfra

    site = bfinfra.load("site.yaml")
    plan = bfinfra.plan(site)
    outcome = bfinfra.apply(site, on_event=print)
    assert outcome.ending == "done"

What is exported here is public, typed and stable; everything else is private. The examples in
`docs/reference/library.md` run as tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.app.addresses import addresses
    from bfinfra.app.apply import apply, destroy, rotate
    from bfinfra.app.context import RunContext
    from bfinfra.app.diagnose import diagnose
    from bfinfra.app.drift import drift, notify, remember
    from bfinfra.app.history import history
    from bfinfra.app.kubeconfig import kubeconfig
    from bfinfra.app.load import load
    from bfinfra.app.plan import plan
    from bfinfra.app.rotation import Rotation
    from bfinfra.app.saved import SavedPlan, save_plan
    from bfinfra.app.tokens import tokens
    from bfinfra.engine.apply import Options
    from bfinfra.engine.guard import Allow, check
    from bfinfra.model.drift import Cause, Drifted, Report
    from bfinfra.model.errors import BfinfraError, Problem, RemoteError, SiteError
    from bfinfra.model.events import Ended, Ending, Event
    from bfinfra.model.finding import Finding, Health
    from bfinfra.model.outcome import Outcome
    from bfinfra.model.plan import Action, Item, Plan
    from bfinfra.model.refs import Key
    from bfinfra.model.site import Site
    from bfinfra.render.result import as_data
    from bfinfra.worlds import embedded

__version__ = "0.1.0"

_HOMES = {
    "app.addresses": ("addresses",),
    "app.apply": ("apply", "destroy", "rotate"),
    "app.context": ("RunContext",),
    "app.diagnose": ("diagnose",),
    "app.drift": ("drift", "notify", "remember"),
    "app.history": ("history",),
    "app.kubeconfig": ("kubeconfig",),
    "app.load": ("load",),
    "app.plan": ("plan",),
    "app.rotation": ("Rotation",),
    "app.saved": ("SavedPlan", "save_plan"),
    "app.tokens": ("tokens",),
    "engine.apply": ("Options",),
    "engine.guard": ("Allow", "check"),
    "model.drift": ("Cause", "Drifted", "Report"),
    "model.errors": ("BfinfraError", "Problem", "RemoteError", "SiteError"),
    "model.events": ("Ended", "Ending", "Event"),
    "model.finding": ("Finding", "Health"),
    "model.outcome": ("Outcome",),
    "model.plan": ("Action", "Item", "Plan"),
    "model.refs": ("Key",),
    "model.site": ("Site",),
    "render.result": ("as_data",),
    "worlds": ("embedded",),
}

_RENAMED = {"Setting": "RunContext"}

__all__ = [  # noqa: RUF022 - in the order of their homes
    "Outcome",
    "Rotation",
    "RunContext",
    "addresses",
    "apply",
    "destroy",
    "diagnose",
    "drift",
    "history",
    "kubeconfig",
    "load",
    "notify",
    "plan",
    "remember",
    "rotate",
    "tokens",
    "SavedPlan",
    "save_plan",
    "Options",
    "Allow",
    "check",
    "Cause",
    "Drifted",
    "Report",
    "BfinfraError",
    "Problem",
    "RemoteError",
    "SiteError",
    "Ended",
    "Ending",
    "Event",
    "Finding",
    "Health",
    "Action",
    "Item",
    "Plan",
    "Key",
    "Site",
    "as_data",
    "embedded",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Imports each name when it is first used, so that `import bfinfra` is instant."""
        for home, names in _HOMES.items():
            if name in names:
                found = getattr(import_module(f"bfinfra.{home}"), name)
                return (
                    _deprecated().taking_old_arguments(found)
                    if home.startswith("app.") and name.islower()
                    else found
                )
        if name in _RENAMED:
            _deprecated().renamed(name, _RENAMED[name])
            return _deprecated().taking_old_arguments(__getattr__(_RENAMED[name]))
        raise AttributeError(f"module 'bfinfra' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *(name for names in _HOMES.values() for name in names)))


def _deprecated() -> Any:
    return import_module("bfinfra.deprecated")
