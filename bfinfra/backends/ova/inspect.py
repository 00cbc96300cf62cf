"""An OVA as plain data, for `bfinfra ova inspect`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bfinfra.backends.ova.contents import Ova


def inspect(ova: Ova, *, verified: bool = False) -> dict[str, Any]:
    """JSON-ready; sizes in bytes. `manifest.state`: verified, present, absent. `verified`: whether `verify`
    succeeded.
    """
    algorithms = sorted({algorithm for algorithm, _ in ova.manifest.values()})
    state = "verified" if verified else "present" if ova.manifest else "absent"
    return {
        "file": ova.source.where,
        "size": ova.size,
        "product": asdict(ova.product),
        "hardware": asdict(ova.hardware) | {"adapters": list(ova.hardware.adapters)},
        "properties": [asdict(prop) for prop in ova.properties],
        "networks": [asdict(network) for network in ova.networks],
        "disks": [asdict(disk) for disk in ova.disks],
        "deployment_options": [asdict(option) for option in ova.options],
        "licences": list(ova.eula),
        "members": [{"name": m.name, "size": m.size} for m in ova.members.values()],
        "manifest": {"state": state, "algorithms": algorithms, "files": len(ova.manifest)},
        "signature": _signature(ova),
    }


def _signature(ova: Ova) -> dict[str, Any] | None:
    """The manifest's signature; times in ISO 8601 UTC."""
    found = ova.signature
    if found is None:
        return None
    return asdict(found) | {
        "not_before": found.not_before.isoformat(),
        "not_after": found.not_after.isoformat(),
        "expired": found.not_after < datetime.now(UTC),
    }
