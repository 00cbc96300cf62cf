# Copyright: the authors of bfinfra
# Apache License, Version 2.0, or GNU General Public License v3.0+ (https://www.gnu.org/licenses/gpl-3.0.txt),
# at your choice
# SPDX-License-Identifier: Apache-2.0 OR GPL-3.0-or-later

"""What the modules share: reading the site, running it with bfinfra's public API, results as plain data,
diffs.
"""

from __future__ import annotations

import contextlib
import json
import os
import traceback
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

try:
    import bfinfra
except ImportError:
    bfinfra = None
    WHY = traceback.format_exc()
else:
    WHY = ""

SITE = {
    "site": {"type": "list", "elements": "path", "required": True},
    "overlays": {"type": "list", "elements": "path", "default": []},
    "values": {"type": "dict", "default": {}},
    "value_files": {"type": "list", "elements": "path", "default": []},
    "secrets": {"type": "dict", "no_log": True},
    "sandbox": {"type": "bool", "default": False},
    "world": {"type": "path"},
}
VARIANT = ("overlays", "values", "value_files")
ALLOW = {
    "allow_delete": {"type": "list", "elements": "str", "default": []},
    "allow_disruption": {"type": "list", "elements": "str", "default": []},
}
TARGETS = {"targets": {"type": "list", "elements": "str", "default": []}}
RUN = {"parallelism": {"type": "int", "default": 10}, "deadline": {"type": "int"}}


class Caller:
    """A module, the site that it is about, and where that is run."""

    def __init__(self, **options):
        self.module = AnsibleModule(argument_spec={**SITE, **options}, supports_check_mode=True)
        if bfinfra is None:
            self.module.fail_json(
                msg=missing_required_lib("bfinfra", url="https://pypi.org/project/bfinfra"), exception=WHY
            )
        self.params, self.check_mode = self.module.params, self.module.check_mode
        os.environ.update({name: str(value) for name, value in (self.params["secrets"] or {}).items()})
        self.saved = None

    @contextlib.contextmanager
    def site(self):
        """The loaded site and where it is run; what bfinfra refuses within ends the module with its words."""
        try:
            paths, variant = self.params["site"], {name: self.params[name] for name in VARIANT}
            if self.params.get("plan_file"):
                paths, variant = self._planned_site()
            sandbox = None
            if self.params["sandbox"] or self.params["world"]:
                sandbox = bfinfra.embedded(*paths, world=self.params["world"] or "")
            site = bfinfra.load(*paths, sandbox=sandbox, **variant)
            yield site, bfinfra.RunContext(sandbox=sandbox)
        except bfinfra.BfinfraError as error:
            problems = bfinfra.as_data(error)["problems"]
            self.module.fail_json(msg=str(error), changed=False, problems=problems)

    def targets(self):
        """Those of the saved plan, or of the options."""
        return self.saved.targets if self.saved else sorted(self.keys("targets"))

    def keys(self, option):
        """The addresses of an option, without C(all)."""
        try:
            return frozenset(bfinfra.Key.parse(word) for word in self.params[option] if word != "all")
        except ValueError as error:
            self.module.fail_json(msg=f"{option}: {error}")

    def _planned_site(self):
        """The files and the variant of a saved plan. The site's path says where it is now."""
        given = [name for name in (*VARIANT, "targets") if self.params[name]]
        if given:
            self.module.fail_json(
                msg=f"{', '.join(given)} can't be given with plan_file: the plan holds what it was made with"
            )
        if len(self.params["site"]) != 1:
            self.module.fail_json(msg="with plan_file, site is one path: the folder where the site is now")
        self.saved = bfinfra.SavedPlan.read(Path(self.params["plan_file"]))
        state = "absent" if self.saved.destroy else "present"
        if self.params["state"] != state:
            self.module.fail_json(msg=f"plan_file was made for state: {state}; say so to apply it")
        place = Path(self.params["site"][0])
        paths, variant = self.saved.at(place.parent if place.is_file() else place)
        values = {each.name: each.data for each in variant.given}
        return paths, dict(overlays=variant.overlays, values=values, value_files=variant.value_files)

    def allow(self, every_delete=False):
        """What the options allow."""
        deletes, disrupts = self.params["allow_delete"], self.params["allow_disruption"]
        return bfinfra.Allow(
            every_delete=every_delete or "all" in deletes,
            every_disruption="all" in disrupts,
            delete=self.keys("allow_delete"),
            disrupt=self.keys("allow_disruption"),
        )

    def options(self):
        """How it is run."""
        return bfinfra.Options(parallelism=self.params["parallelism"], deadline=self.params["deadline"])

    def planned(self, found, allow, **more):
        """End check mode: what would be done, or what an apply would refuse."""
        bfinfra.check(found, allow)
        self.end(found, changed=bool(found.pending), diff=diff(found), **more)

    def applied(self, outcome, events, **more):
        """End a run: what was done. Failed where it did not come to its end."""
        data = bfinfra.as_data(outcome, events)
        ran = {
            each["address"]
            for each in data["resources"]
            if any(step["problem"] is None for step in each["steps"])
        }
        notes = {each["address"]: each["note"] for each in data["resources"] if each["note"]}
        result = dict(
            changed=outcome.writes > 0,
            diff=diff(outcome.plan, ran),
            ending=data["ending"],
            resources=data["resources"],
            out_of_service=data["out_of_service"],
            notes=notes,
            writes=data["writes"],
            requests=data["requests"],
            **more,
        )
        if data["ending"] != "done":
            self.module.fail_json(msg=_unfinished(data), **result)
        self.end(outcome.plan, **result)

    def end(self, plan, **result):
        """Exit with the plan beside the result."""
        self.module.exit_json(plan=bfinfra.as_data(plan), **result)


def diff(plan, ran=None):
    """Each resource that would change, or of those that `ran`: its fields before and after, a line each."""
    return [
        _sides(item)
        for item in bfinfra.as_data(plan)["items"]
        if item["steps"] and (ran is None or item["address"] in ran)
    ]


def _sides(item):
    before = [f"{change['field']}: {_shown(change['now'])}" for change in item["changes"]]
    after = [f"{change['field']}: {_shown(change['wanted'])}" for change in item["changes"]]
    if item["action"] == "create":
        before = []
    if item["action"] == "delete":
        before, after = before or [f"it stands: {item['address']}"], []
    after += (
        [] if item["changes"] or item["action"] == "delete" else [step["title"] for step in item["steps"]]
    )
    return dict(
        before_header=item["address"],
        after_header=f"{item['address']} ({item['action']})",
        before=_text(before),
        after=_text(after),
    )


def _text(lines):
    return "".join(f"{line}\n" for line in lines)


def _shown(value):
    if isinstance(value, dict) and set(value) == {"later"}:
        return "(known after {}: {})".format(*value["later"])
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _unfinished(data):
    left = [each for each in data["resources"] if each["ending"] not in ("done", "kept")]
    words = [
        f"{each['address']}: {each['ending']}" + (f": {_problem(each['problem'])}" if each["problem"] else "")
        for each in left
    ]
    words += [f"{each['address']} {each['how']} now" for each in data["out_of_service"]]
    return f"{data['site']} ended as {data['ending']}: " + "; ".join(words)


def _problem(data):
    return f"{data['what']} ({data['why']})" if data["why"] else data["what"]
