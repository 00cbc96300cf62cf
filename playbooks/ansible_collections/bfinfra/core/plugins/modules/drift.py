#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drift
short_description: Say what no longer agrees with a bfinfra site, and who moved it
version_added: 0.1.0
description:
  - Compares what was applied, what the site says and what the world says. Never writes to the world, so it
    never reports a change.
  - Fails where something could not be read, as that may have drifted as well. Drift itself does not fail it,
    use C(failed_when) on RV(drifted).
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
  - bfinfra.core.targets
attributes:
  check_mode:
    description: The same, but nothing is kept for the next check and no webhook is told.
    support: full
  diff_mode:
    description: What the world has and what is wanted stands in RV(report).
    support: none
options:
  remember:
    description:
      - Keep on this machine what was seen, so that the next check knows what is new and what has ended, and
        tell the site's webhook, where it names one. With O(targets) neither is done.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Fail where the world has moved
  bfinfra.core.drift:
    site: site.yaml
  delegate_to: localhost
  register: seen
  failed_when: seen.drifted
"""

RETURN = r"""
drifted:
  description: Whether anything has drifted that the site does not ignore.
  returned: success
  type: bool
alarming:
  description: Addresses of what has drifted.
  returned: success
  type: list
  elements: str
report:
  description: Each field that does not agree, its cause, values, who and since when, as C(bfinfra drift
    --output json) prints it.
  returned: always, but where the site is refused
  type: dict
reported:
  description: Whether the webhook was told. Where it was not, the next check sends the message again.
  returned: success
  type: bool
problems:
  description: What stands in the way, each with C(what), C(where), C(why) and C(next).
  returned: when refused
  type: list
  elements: dict
"""

from ansible_collections.bfinfra.core.plugins.module_utils.sites import TARGETS, Caller, bfinfra


def main():
    caller = Caller(remember={"type": "bool", "default": True}, **TARGETS)
    with caller.site() as (site, context):
        found, reported = bfinfra.drift(site, targets=caller.targets(), context=context), False
        if caller.params["remember"] and not caller.check_mode:
            reported = _tell(caller.module, site, found, context)
        report = bfinfra.as_data(found)
        result = dict(
            changed=False,
            drifted=report["drifted"],
            alarming=sorted({str(each.key) for each in found.alarming}),
            report=report,
            reported=reported,
        )
        if found.blind:
            what = [each["what"] for each in report["problems"]] + [
                f"{each['address']} can't be read: {each['why']}" for each in report["unreadable"]
            ]
            caller.module.fail_json(
                msg="what could not be read or decided may have drifted as well: " + "; ".join(what), **result
            )
        caller.module.exit_json(**result)


def _tell(module, site, found, context):
    """Tell the webhook, keep what was seen. A webhook that takes nothing is no reason to fail."""
    reported, left = False, ""
    try:
        reported = bfinfra.notify(site, found, context=context)
    except bfinfra.BfinfraError as error:
        left = str(error)
        module.warn(f"the webhook accepted no message, the next check sends it again: {error}")
    bfinfra.remember(found, reported=not left)
    return reported


if __name__ == "__main__":
    main()
