"""The use cases of bfinfra, each in a file of its own. `wiring` gives kinds their backends for all of them.

A module and its use case have the same name; here the name is the use case.
"""

from __future__ import annotations

from bfinfra.app.addresses import addresses
from bfinfra.app.apply import apply, destroy, rotate
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.diagnose import diagnose
from bfinfra.app.drift import drift, notify, remember
from bfinfra.app.get import get
from bfinfra.app.health import health
from bfinfra.app.history import history
from bfinfra.app.kubeconfig import kubeconfig
from bfinfra.app.load import load, load_variant
from bfinfra.app.plan import plan
from bfinfra.app.privileges import privileges
from bfinfra.app.rotation import Rotation
from bfinfra.app.tokens import tokens
from bfinfra.app.trust import certificate, certificates, certificates_inside, host_keys

__all__ = [
    "LIVE",
    "Rotation",
    "RunContext",
    "addresses",
    "apply",
    "certificate",
    "certificates",
    "certificates_inside",
    "destroy",
    "diagnose",
    "drift",
    "get",
    "health",
    "history",
    "host_keys",
    "kubeconfig",
    "load",
    "load_variant",
    "notify",
    "plan",
    "privileges",
    "remember",
    "rotate",
    "tokens",
]
