#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: adopt
short_description: Take over objects that a bfinfra site describes and that stand there already
version_added: 0.1.0
description:
  - Puts the site's mark on objects that somebody else made, and brings them in line with what the site says
    of them. Nothing else of the site is done.
  - What has the mark already is left alone, so it can run again.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
  - bfinfra.core.run
  - bfinfra.core.allow
attributes:
  check_mode:
    description: Plans, and says whether something would be written; every writing request is refused before
      it leaves the process.
    support: full
  diff_mode:
    description: Shows the fields before and after, of each resource that changes.
    support: full
options:
  addresses:
    description:
      - Addresses, such as V(supervisor_namespace/cnasg), of what is taken over. Each must stand there.
      - V(all) takes over whatever of the site stands there, alone in the list.
    type: list
    elements: str
    required: true
seealso:
  - module: bfinfra.core.site
"""

EXAMPLES = r"""
- name: What would change if we took over what is there
  bfinfra.core.adopt:
    site: site.yaml
    addresses: [all]
  check_mode: true
  diff: true
  delegate_to: localhost

- name: Take over one namespace
  bfinfra.core.adopt:
    site: site.yaml
    addresses: [supervisor_namespace/cnasg]
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

from ansible_collections.bfinfra.core.plugins.module_utils.sites import ALLOW, RUN, Caller, bfinfra


def main():
    caller = Caller(addresses={"type": "list", "elements": "str", "required": True}, **ALLOW, **RUN)
    addresses, allow, events = caller.params["addresses"], caller.allow(), []
    if not addresses or ("all" in addresses and len(addresses) > 1):
        caller.module.fail_json(msg="addresses: name what is taken over, or all and nothing else")
    what = dict(adopt=caller.keys("addresses"), adopt_all="all" in addresses)
    with caller.site() as (site, context):
        if caller.check_mode:
            found = bfinfra.plan(site, adopt_only=not what["adopt_all"], context=context, **what)
            caller.planned(found, allow)
        outcome = bfinfra.apply(
            site,
            approve=lambda _: allow,
            options=caller.options(),
            on_event=events.append,
            context=context,
            **what,
        )
        caller.applied(outcome, events)


if __name__ == "__main__":
    main()
