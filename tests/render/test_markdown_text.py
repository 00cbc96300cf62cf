"""For a ticket or a comment on a pull request."""

from __future__ import annotations

from dataclasses import replace

from render_samples import NAMESPACE, Write, units

from bfinfra.model.errors import Problem
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.render import markdown
from bfinfra.render.style import Style


def test_a_plan_is_a_table_with_the_details_folded(plan):
    assert (
        markdown.plan(replace(plan, items=plan.items[:3]), Style(units=units))
        == """\
### bfinfra plan: singapore-poc

**1 to create, 1 to update, 1 up to date**

| action | resource | disruption |
| --- | --- | --- |
| ~ update | `gpu_host/esx209-161.aiml.local` | reboots |
| + create | `supervisor_namespace/cnasg` |  |

<details><summary>Steps and fields</summary>

```diff
~ update  gpu_host/esx209-161.aiml.local
    1. Reboot esx209-161.aiml.local  [reboots: passthrough becomes active only then]
       passthrough.0.count: 1 → 2

+ create  supervisor_namespace/cnasg
    1. Create the namespace cnasg on the cluster compute
       limits.cpu: 48GHz
       limits.memory: 384GiB
       vm_classes: [best-effort-xlarge]
```

</details>
"""
    )


def test_problems_warnings_and_the_unreadable_are_lists(broken):
    assert (
        markdown.plan(replace(broken, items=()))
        == """\
### bfinfra plan: singapore-poc

**0 up to date, 1 unreadable, 1 problem**

#### Problems
- `site.yaml:12:5`: unknown field limts<br>why: a namespace has no such field<br>next: did you mean limits?

#### Warnings
- `vcsa.aiml.local:443`: the certificate ends in 9 days<br>next: renew it

#### Unreadable
- `token_secret` can't be read: cluster-01 does not answer
"""
    )


def test_an_outcome_is_a_table_with_notes(outcome, events):
    shown = markdown.outcome(outcome, events)
    assert (
        "| ✓ created | `supervisor_namespace/cnasg` | 20s | 1 | https\\://172.24.206.1<br>logged: run on "
        "2 GPUs |"
    ) in shown
    assert "- `esx209-161.aiml.local`: the host did not come back<br>why: no answer on port 443" in shown
    assert shown.endswith(
        "Correct what failed, then run the same command again: it continues with what is left.\n"
    )


def test_names_make_no_markup_no_mention_and_no_html():
    assert (
        markdown.prose("<b>|*a* _b_ snake_case @you [x](y) `c` #1")
        == "\\<b\\>\\|\\*a\\* \\_b\\_ snake_case @&#8203;you \\[x\\](y) \\`c\\` \\#&#8203;1"
    )
    assert markdown.code("a`|b") == "<code>a&#96;&#124;b</code>"


def test_a_name_can_not_leave_the_fence():
    item = Item(Key("vm", "```\n</details>"), Action.CREATE, (Write(name="x"),))
    shown = markdown.plan(Plan("s", (item,)))
    assert "````diff\n" in shown
    assert "\n</details>" not in shown.removesuffix("\n</details>\n")


def test_a_list_of_problems_is_a_paragraph_of_its_own():
    assert (
        markdown.problems([Problem("a", str(NAMESPACE))])
        == "#### Problems\n- `supervisor_namespace/cnasg`: a\n"
    )


def test_what_one_cause_hides_is_one_line(broken):
    hidden = {"gpu_host": "vc:443 does not answer", "token_secret": "denied"} | dict.fromkeys(
        ("gpu_host/h0", "gpu_host/h1"), "vc:443 does not answer"
    )
    shown = markdown.plan(replace(broken, items=(), unreadable=hidden))
    assert (
        "- `gpu_host/h0`, `gpu_host/h1` can't be read: vc:443 does not answer. Neither can resources" in shown
    )
    assert shown.count("can't be read") == 2
