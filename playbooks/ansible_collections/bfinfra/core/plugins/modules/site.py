#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: site
short_description: Make the world as a bfinfra site says, or delete what the site made
version_added: 0.1.0
description:
  - Applies or destroys a site, one declarative file that describes GPU hosts, Bitfusion servers, namespaces,
    clusters, tokens and workloads.
  - Plans, refuses what is not allowed before the first write, and runs what is left; what agrees already is
    left alone.
  - In check mode it plans on a read-only connection and fails where the apply would be refused.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
  - bfinfra.core.run
  - bfinfra.core.allow
  - bfinfra.core.targets
attributes:
  check_mode:
    description: Plans, and says whether something would be written; every writing request is refused before
      it leaves the process.
    support: full
  diff_mode:
    description: Shows the fields before and after, of each resource that changes.
    support: full
options:
  state:
    description:
      - V(present) makes the world as the site says.
      - V(absent) deletes whatever the site made and puts back what it found, without O(allow_delete) for what
        holds no objects of others.
    type: str
    choices: [present, absent]
    default: present
  plan_file:
    description:
      - A plan that M(bfinfra.core.plan) or C(bfinfra plan --out) saved. Exactly this is done, or nothing,
        where anything is not as it was planned.
      - O(site) is then the folder where the site is now. Overlays, values and targets are those of the plan,
        and O(state) must be the one that it was made for.
    type: path
notes:
  - Work that is still going on when O(deadline) is over fails with RV(ending=still-waiting); the next run
    waits on. Use C(until) and C(retries) on it.
"""

EXAMPLES = r"""
- name: Say what would be done, with each field
  bfinfra.core.site:
    site: site.yaml
  check_mode: true
  diff: true
  delegate_to: localhost

- name: Make it so
  bfinfra.core.site:
    site: site.yaml
    secrets:
      VCENTER_PASSWORD: "{{ vault_vcenter_password }}"
  delegate_to: localhost
  register: made

- name: Do exactly what was planned and looked at
  bfinfra.core.site:
    site: sites/singapore
    plan_file: singapore.plan.json
  delegate_to: localhost

- name: Bring one cluster in line, with all that it needs
  bfinfra.core.site:
    site: site.yaml
    targets: [tanzu_cluster/cluster-01]
  delegate_to: localhost

- name: Show what is worth knowing, such as addresses
  ansible.builtin.debug:
    var: made.notes

- name: Delete what the site made
  bfinfra.core.site:
    site: site.yaml
    state: absent
  delegate_to: localhost
"""

RETURN = r"""
plan:
  description: What was to be done, as C(bfinfra plan --output json) prints it.
  returned: success
  type: dict
ending:
  description: How the run ended, V(done), V(failed), V(still-waiting) or V(stopped).
  returned: when it ran
  type: str
resources:
  description: Each resource with its ending, note, problem and the steps that ran.
  returned: when it ran
  type: list
  elements: dict
out_of_service:
  description:
  - What is off, or in maintenance mode, after a run that did not finish, each with C(address), C(how) and the
    steps that are C(left).
  returned: when it ran
  type: list
  elements: dict
notes:
  description: What is worth knowing of a resource, by its address, such as where it answers.
  returned: when it ran
  type: dict
writes:
  description: How many writing requests were sent.
  returned: when it ran
  type: int
requests:
  description: How many requests were sent.
  returned: when it ran
  type: int
problems:
  description: What stands in the way, each with C(what), C(where), C(why) and C(next).
  returned: when refused
  type: list
  elements: dict
"""

from ansible_collections.bfinfra.core.plugins.module_utils.sites import ALLOW, RUN, TARGETS, Caller, bfinfra


def main():
    caller = Caller(
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        plan_file={"type": "path"},
        **ALLOW,
        **RUN,
        **TARGETS,
    )
    gone, events = caller.params["state"] == "absent", []
    allow = caller.allow(every_delete=gone)
    with caller.site() as (site, context):
        targets = caller.targets()
        if caller.check_mode:
            found = bfinfra.plan(site, destroy=gone, targets=targets, context=context)
            if caller.saved:
                caller.saved.check_site(site)
                caller.saved.check(site, found)
            caller.planned(found, allow)
        outcome = bfinfra.apply(
            site,
            saved=caller.saved,
            destroy=gone,
            targets=targets,
            approve=lambda _: allow,
            options=caller.options(),
            on_event=events.append,
            context=context,
        )
        caller.applied(outcome, events)


if __name__ == "__main__":
    main()
