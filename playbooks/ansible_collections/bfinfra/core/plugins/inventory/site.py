# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: site
short_description: Servers, clients, clusters and Linux machines of a bfinfra site
version_added: 0.1.0
description:
  - Reads a site and lists what has an address, in a group for each kind (C(bitfusion_server), C(linux_host),
    C(tanzu_cluster), C(kubernetes_cluster)),
    all within a group named after the site. Machines with Bitfusion clients, FlexDirect or a pool are in
      groups of these kinds, too.
  - The file of this inventory is YAML and ends in C(bfinfra_inventory.yaml) or C(bfinfra_inventory.yml). One
    that ends in C(bfinfra.yaml) is taken as well, but editors take that for a site.
  - A host is called as in the site, or C(kind.name) where two kinds share the name.
  - Each host has C(ansible_host), and C(ansible_port) and C(ansible_user) where the site says so;
    C(bfinfra_site), C(bfinfra_address) (C(kind/name)) and
    C(bfinfra_fields), the fields as the site writes them, secrets as references. Clusters are no machines,
      their host and port are those of the API.
  - Nothing is written, and no secret becomes a variable.
author:
  - The authors of bfinfra (@bfinfra)
requirements:
  - bfinfra, in the interpreter that runs Ansible
extends_documentation_fragment:
  - constructed
  - inventory_cache
options:
  plugin:
    description: Says that this file is for this plugin.
    type: str
    required: true
    choices: [bfinfra.core.site]
  site:
    description: The site's files or folders, relative to this file.
    type: list
    elements: str
    required: true
  overlays:
    description: Files or folders that are laid on the site, relative to this file.
    type: list
    elements: str
    default: []
  values:
    description: Values that the site declares, by name.
    type: dict
    default: {}
  value_files:
    description: YAML files of such values, relative to this file.
    type: list
    elements: str
    default: []
  look:
    description:
      - Ask the world for addresses that the file doesn't know, such as those of clusters and of servers that
        ask DHCP.
      - Without it nobody is asked, and no secret is needed.
    type: bool
    default: true
  sandbox:
    description: Ask the embedded sandbox of the site's world instead of the real servers.
    type: bool
    default: false
  world:
    description: World file of the sandbox, relative to this file, where it isn't the one that belongs to the
      site; implies O(sandbox=true).
    type: str
"""

EXAMPLES = r"""
# poc.bfinfra_inventory.yaml
plugin: bfinfra.core.site
site: [site.yaml]
look: false
keyed_groups:
  - key: bfinfra_fields.host
    prefix: on
    separator: "_"
"""

from pathlib import Path

from ansible.errors import AnsibleParserError
from ansible.module_utils.basic import missing_required_lib
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

try:
    import bfinfra
except ImportError:
    bfinfra = None

ENDS = tuple(f"bfinfra{what}.{end}" for what in ("_inventory", "") for end in ("yaml", "yml"))


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """What of a site has an address."""

    NAME = "bfinfra.core.site"

    def verify_file(self, path):
        """Whether the file is for this plugin, by its name."""
        return super().verify_file(path) and path.endswith(ENDS)

    def parse(self, inventory, loader, path, cache=True):
        """Fill the inventory, from the cache where that is wanted and holds it."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        self.load_cache_plugin()
        key, kept = self.get_cache_key(path), None
        if self.get_option("cache") and cache:
            kept = self._cache.get(key)
        if kept is None:
            kept = self._found(Path(path).parent)
            if self.get_option("cache"):
                self._cache[key] = kept
        for host in kept:
            self._add(host)

    def _found(self, folder):
        """Each host as plain data."""
        if bfinfra is None:
            raise AnsibleParserError(missing_required_lib("bfinfra", url="https://pypi.org/project/bfinfra"))
        files = [folder / each for each in self.get_option("site")]
        try:
            sandbox = None
            if self.get_option("sandbox") or self.get_option("world"):
                world = self.get_option("world")
                sandbox = bfinfra.embedded(*files, world=folder / world if world else "")
            site = bfinfra.load(
                *files,
                sandbox=sandbox,
                overlays=[folder / each for each in self.get_option("overlays")],
                values=self.get_option("values"),
                value_files=[folder / each for each in self.get_option("value_files")],
            )
            addresses = bfinfra.addresses(
                site, look=self.get_option("look"), context=bfinfra.RunContext(sandbox=sandbox)
            )
            return list(_hosts(site, addresses))
        except bfinfra.BfinfraError as error:
            raise AnsibleParserError(str(error)) from error

    def _add(self, host):
        groups = [self.inventory.add_group(self._sanitize_group_name(each)) for each in host["groups"]]
        whole = self.inventory.add_group(self._sanitize_group_name(host["variables"]["bfinfra_site"]))
        for group in groups:
            self.inventory.add_child(whole, group)
            self.inventory.add_host(host["name"], group=group)
        for name, value in host["variables"].items():
            self.inventory.set_variable(host["name"], name, value)
        strict, variables = self.get_option("strict"), host["variables"]
        self._set_composite_vars(self.get_option("compose"), variables, host["name"], strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host["name"], strict=strict)
        self._add_host_to_keyed_groups(
            self.get_option("keyed_groups"), variables, host["name"], strict=strict
        )


def _hosts(site, addresses):
    names = [key.name for key in addresses]
    for key, address in addresses.items():
        spec = site.resources[key]
        host, colon, port = address.rpartition(":") if address.count(":") == 1 else (address, "", "")
        variables = {
            "bfinfra_site": site.name,
            "bfinfra_address": str(key),
            "bfinfra_fields": spec.applied(),
            "ansible_host": host,
        }
        if colon:
            variables["ansible_port"] = int(port)
        if hasattr(spec, "user"):
            variables["ansible_user"] = spec.user
        groups = [key.kind, *(_using(site, key.name) if key.kind == "linux_host" else ())]
        yield {
            "name": key.name if names.count(key.name) == 1 else f"{key.kind}.{key.name}",
            "variables": variables,
            "groups": groups,
        }


def _using(site, machine):
    """The kinds that are on a Linux machine."""
    kinds = (
        "bitfusion_client",
        "flexdirect_host",
        "flexdirect_pool",
        "nvidia_container_toolkit",
        "vgpu_license",
    )
    return dict.fromkeys(
        key.kind for key, spec in site.resources.items() if key.kind in kinds and machine in spec.hosts
    )
