#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor
short_description: Find what would stop an apply of a bfinfra site
version_added: 0.1.0
description:
  - Looks at names, connections, certificates, accounts, rights, versions, clocks, room and files. Never
    writes, so it never reports a change.
  - Fails where something would stop an apply. Warnings don't fail it.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
attributes:
  check_mode:
    description: The same, as it only reads.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
seealso:
  - module: bfinfra.core.validate
"""

EXAMPLES = r"""
- name: Would an apply get through
  bfinfra.core.doctor:
    site: site.yaml
  delegate_to: localhost
  register: found

- name: Nothing may even be doubtful
  ansible.builtin.assert:
    that: found.findings | selectattr('health', 'eq', 'warning') | length == 0
"""

RETURN = r"""
findings:
  description: Each thing that was looked at, with its C(health) (V(good), V(warning), V(bad) or V(skipped)),
    C(check), C(about), C(what), C(why) and C(next).
  returned: always, but where the site is refused
  type: list
  elements: dict
problems:
  description: What is wrong with the site, each with C(what), C(where), C(why) and C(next).
  returned: when refused
  type: list
  elements: dict
"""

from ansible_collections.bfinfra.core.plugins.module_utils.sites import Caller, bfinfra


def main():
    caller = Caller()
    with caller.site() as (site, context):
        findings = bfinfra.as_data(bfinfra.diagnose(site, context=context), site=site.name)["findings"]
    bad = [each for each in findings if each["health"] == "bad"]
    if bad:
        words = "; ".join(f"{each['about']}: {each['what']}" for each in bad)
        caller.module.fail_json(msg=f"an apply would stop: {words}", changed=False, findings=findings)
    caller.module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
