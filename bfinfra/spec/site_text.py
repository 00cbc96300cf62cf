"""Writes the text of a new site: with commented examples, or describing existing objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.formats.yaml import comment, scalar
from bfinfra.model.description import Path
from bfinfra.model.refs import Key
from bfinfra.spec.writing import block, entry, same

SCHEMA = "site.schema.json"
MODELINE = f"# yaml-language-server: $schema={SCHEMA}\n"
Resource = tuple[Mapping[str, object], Mapping[Path, str]]
"""Fields, and which of them the user must fill in."""

COMMENTED = """\
# One file describes the site. `bfinfra kinds` lists what it can contain, `bfinfra kinds KIND` each field.
site: {name}  # the mark on every object that bfinfra makes; don't change it later

vcenter:
  server: vcenter.example.com  # fill in: host, or host:port
  username: administrator@vsphere.local
  # Never the password itself: a reference, {{env: …}}, {{file: …}}, {{command: […]}} or {{keyring: …}}
  password: {{env: VCENTER_PASSWORD}}
  # `bfinfra trust site.yaml` shows the line to write; without one this machine's store of authorities counts
  # trust: {{sha256: "…"}}

# What follows are examples: take the `# ` off, and write your own names.
#
# Hosts whose GPUs are passed through to virtual machines:
# gpu_host:
#   esx1.example.com:
#     passthrough: [{{vendor: 0x10de, device: 0x1eb8, count: 2}}]
#     reboot: if_needed          # or never: then an owed reboot is only reported
#
# A Bitfusion server, deployed from its OVA:
# bitfusion_server:
#   bf-01:
#     ova: {{file: downloads/bitfusion-server.ova}}
#     host: esx1.example.com
#     gpus: 2
#     networks:
#       management: {{network: VM Network, address: 192.168.10.5/24, gateway: 192.168.10.1}}
#     properties:
#       customer_password: {{env: BITFUSION_PASSWORD}}
#
# A namespace on a supervisor, and a Tanzu cluster in it:
# supervisor_namespace:
#   team-a:
#     cluster: compute
#     storage: {{gold: 500GiB}}
#     vm_classes: [best-effort-small]
# tanzu_cluster:
#   cluster-01:
#     namespace: team-a
#     version: v1.23.8
#     control_plane: {{count: 1, vm_class: best-effort-small, storage_class: gold}}
#     workers: {{workers: {{count: 2, vm_class: best-effort-small, storage_class: gold}}}}
"""


def commented(name: str) -> str:
    """A site without resources, with commented examples."""
    return MODELINE + COMMENTED.format(name=scalar(name))


def describing(
    name: str,
    vcenter: Mapping[str, object],
    resources: Mapping[Key, Resource],
    left_out: Iterable[tuple[str, str]],
) -> str:
    """A site that describes existing objects. `left_out`: what isn't described, and why. Raises BfinfraError
    if it would be read as anything else.
    """
    kinds: dict[str, dict[str, Resource]] = {}
    for key, resource in resources.items():
        kinds.setdefault(key.kind, {})[key.name] = resource
    listed = [comment(f"  {what}: {why}") for what, why in left_out]
    server = vcenter["server"]
    parts = [
        f"{MODELINE}{comment(f'Written from the objects on {server}.')}\n"
        f"# `# fill in` marks what vCenter doesn't report.\n" + entry("site", name),
        entry("vcenter", vcenter),
        *(block(kind, found) for kind, found in sorted(kinds.items())),
        *(["\n".join(["# Not described:", *listed, ""])] if listed else []),
    ]
    return same("\n".join(parts), {"site": name, "vcenter": vcenter, **_fields(kinds)})


def _fields(kinds: Mapping[str, Mapping[str, Resource]]) -> dict[str, object]:
    return {kind: {name: fields for name, (fields, _) in found.items()} for kind, found in kinds.items()}
