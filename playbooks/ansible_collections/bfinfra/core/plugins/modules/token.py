#!/usr/bin/python
# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: token
short_description: Rotate a site's Bitfusion tokens, or say when they end
version_added: 0.1.0
description:
  - Puts the token that its source has now wherever it is held, the site's own Secrets first, then the copies
    that others made of them.
  - Says when each token ends, and which servers it leads to. A token's content is never shown.
author:
  - The authors of bfinfra (@bfinfra)
extends_documentation_fragment:
  - bfinfra.core.site
  - bfinfra.core.run
attributes:
  check_mode:
    description: Plans, and says whether something would be written; every writing request is refused before
      it leaves the process.
    support: full
  diff_mode:
    description: Shows which Secrets and workloads change, never what they hold.
    support: full
options:
  state:
    description:
      - V(read) only reads the tokens' sources and asks no server.
      - V(rotated) puts the token wherever it is held.
    type: str
    choices: [read, rotated]
    default: read
  name:
    description:
      - Name of the site's C(bitfusion_token) to rotate, where it has several.
    type: str
    default: ""
  restart:
    description:
      - With O(state=rotated), also start workloads anew that hold the token before.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: When do the tokens end
  bfinfra.core.token:
    site: site.yaml
  delegate_to: localhost
  register: held
  failed_when: held.tokens.values() | map(attribute='days_left') | min < 30

- name: Put the new one wherever the old one is
  bfinfra.core.token:
    site: site.yaml
    state: rotated
    name: cnasg
    restart: true
  delegate_to: localhost
"""

RETURN = r"""
tokens:
  description: By name, when a token ends in C(not_after) (ISO 8601, UTC), its C(days_left), and the
    C(servers) that it leads to as host and port.
  returned: success
  type: dict
plan:
  description: What was to be done, as C(bfinfra plan --output json) prints it.
  returned: when O(state=rotated)
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
  description: What is worth knowing of a resource, by its address, such as copies that were left alone.
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

from datetime import datetime, timezone

from ansible_collections.bfinfra.core.plugins.module_utils.sites import RUN, Caller, bfinfra


def main():
    caller = Caller(
        state={"type": "str", "choices": ["read", "rotated"], "default": "read"},
        name={"type": "str", "default": ""},
        restart={"type": "bool", "default": False},
        **RUN,
    )
    name, restart, events = caller.params["name"], caller.params["restart"], []
    with caller.site() as (site, context):
        found = {each: token for each, token in bfinfra.tokens(site).items() if name in ("", each)}
        if bad := [token for token in found.values() if isinstance(token, bfinfra.Problem)]:
            raise bfinfra.BfinfraError(*bad)
        tokens = {each: _data(token) for each, token in found.items()}
        if caller.params["state"] == "read":
            caller.module.exit_json(changed=False, tokens=tokens)
        if caller.check_mode:
            found = bfinfra.plan(site, rotation=bfinfra.Rotation(name, restart), context=context)
            caller.planned(found, bfinfra.Allow(), tokens=tokens)
        outcome = bfinfra.rotate(
            site, name, restart=restart, options=caller.options(), on_event=events.append, context=context
        )
        caller.applied(outcome, events, tokens=tokens)


def _data(token):
    left = token.not_after - datetime.now(timezone.utc)
    return dict(
        not_after=f"{token.not_after:%Y-%m-%dT%H:%M:%SZ}",
        days_left=left.days,
        servers=[f"{host}:{port}" for host, port in token.servers],
    )


if __name__ == "__main__":
    main()
