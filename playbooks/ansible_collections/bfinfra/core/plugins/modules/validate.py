#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate
short_description: Say what is wrong with a bfinfra site, without asking a server
version_added: 0.1.0
description:
  - Reads a site's files and fails with everything that can be known to be wrong, each with its place in the
    file. Asks no server and writes nothing, so it never reports a change.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
attributes:
  check_mode:
    description: The same, as it only reads files.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
seealso:
  - module: bfinfra.core.doctor
"""

EXAMPLES = r"""
- name: Is the site right
  bfinfra.core.validate:
    site: site.yaml
    overlays: [prod.yaml]
  delegate_to: localhost
"""

RETURN = r"""
resources:
  description: Addresses of the site's resources.
  returned: success
  type: list
  elements: str
warnings_found:
  description: What is right, but perhaps not meant, each with C(what), C(where), C(why) and C(next). Each is
    a warning of Ansible's as well.
  returned: success
  type: list
  elements: dict
problems:
  description: What is wrong, each with C(what), C(where), C(why) and C(next).
  returned: when refused
  type: list
  elements: dict
"""

from ansible_collections.bfinfra.core.plugins.module_utils.sites import Caller, bfinfra


def main():
    caller = Caller()
    with caller.site() as (site, _context):
        found = [each.problem for each in site.warnings]
        for each in found:
            caller.module.warn(str(each))
        caller.module.exit_json(
            changed=False,
            resources=sorted(map(str, site.resources)),
            warnings_found=bfinfra.as_data(bfinfra.BfinfraError(*found))["problems"] if found else [],
        )


if __name__ == "__main__":
    main()
