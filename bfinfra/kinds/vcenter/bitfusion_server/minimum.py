"""The oldest release of Bitfusion that the site's device plug-in works with, checked for the servers that its
token leads to. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bfinfra.backends.ova import Ova
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Problem
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

MINIMUM = (2, 5)
"""From the prerequisites of the device plug-in: Bitfusion 2.5+."""


def conflicts(wanted: Specs, ovas: Mapping[str, Ova | Problem]) -> Iterator[Conflict]:
    """Servers of an older release, as far as their appliance's version is known."""
    for key, spec in wanted.items():
        if key.kind != "bitfusion_device_plugin" or not spec.token_secret:
            continue
        secret = wanted.get(Key("token_secret", spec.token_secret))
        token = wanted.get(Key("bitfusion_token", secret.token)) if secret else None
        for name in token.servers if token else ():
            server = wanted.get(Key("bitfusion_server", name))
            package = ovas.get(server.ova.text) if server and server.ova else None
            if isinstance(package, Ova) and (version := _older(package)):
                yield Conflict(
                    Spot(key, "token_secret"),
                    f"its token leads to a server of Bitfusion {version}",
                    (Spot(Key("bitfusion_server", name), "ova"),),
                    why=f"the device plug-in needs {'.'.join(map(str, MINIMUM))} or later",
                    next="deploy a newer appliance",
                )


def _older(package: Ova) -> str:
    """The version, if the appliance is a Bitfusion older than the minimum, else ""."""
    product = package.product
    found = re.match(r"(\d+)\.(\d+)", product.full_version) if "bitfusion" in product.name.lower() else None
    return product.full_version if found and (int(found[1]), int(found[2])) < MINIMUM else ""
