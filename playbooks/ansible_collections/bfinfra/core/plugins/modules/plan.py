#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Say what applying a bfinfra site would do
version_added: 0.1.0
description:
  - Reads the world and decides; never writes, so it never reports a change.
  - What would stop an apply is in the plan's C(problems) and C(unreadable), and does not fail the module.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
  - bfinfra.core.targets
attributes:
  check_mode:
    description: The same as without, as it only reads; O(out) is not written.
    support: full
  diff_mode:
    description: The fields before and after, of each resource that would change, are in RV(diff).
    support: full
options:
  state:
    description:
      - What the site is planned for, see M(bfinfra.core.site).
    type: str
    choices: [present, absent]
    default: present
  out:
    description:
      - Save the plan to this file, for O(bfinfra.core.site#module:plan_file). A plan with problems, or of
        what could not be read, is not saved.
      - The file is readable by its owner only. It holds no secrets.
    type: path
seealso:
  - module: bfinfra.core.site
"""

EXAMPLES = r"""
- name: What would be done
  bfinfra.core.plan:
    site: site.yaml
  delegate_to: localhost
  register: found

- name: Plan here, to apply exactly this elsewhere
  bfinfra.core.plan:
    site: site.yaml
    out: site.plan.json
  delegate_to: localhost

- name: Stop where something would be deleted
  ansible.builtin.assert:
    that: found.plan.summary.delete == 0
"""

RETURN = r"""
plan:
  description: What an apply would do, as C(bfinfra plan --output json) prints it.
  returned: success
  type: dict
saved:
  description: Whether the plan was saved.
  returned: success
  type: bool
pending:
  description: Addresses of what would be written.
  returned: success
  type: list
  elements: str
diff:
  description: The fields before and after, of each resource that would change.
  returned: success
  type: list
  elements: dict
problems:
  description: What is wrong with the site, each with C(what), C(where), C(why) and C(next).
  returned: when refused
  type: list
  elements: dict
"""

from pathlib import Path

from ansible_collections.bfinfra.core.plugins.module_utils.sites import TARGETS, Caller, bfinfra, diff


def main():
    caller = Caller(
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        out={"type": "path"},
        **TARGETS,
    )
    gone, out = caller.params["state"] == "absent", caller.params["out"]
    with caller.site() as (site, context):
        found = bfinfra.plan(site, destroy=gone, targets=caller.targets(), context=context)
        saved = bool(out) and not (caller.check_mode or found.problems or found.unreadable)
        if saved:
            bfinfra.save_plan(Path(out), site, found, destroy=gone)
        pending = [str(item.key) for item in found.pending]
        caller.end(found, changed=False, saved=saved, pending=pending, diff=diff(found))


if __name__ == "__main__":
    main()
