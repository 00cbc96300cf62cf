"""Plans as people read them: golden text in the body."""

from __future__ import annotations

from dataclasses import dataclass, replace

from render_samples import NAMESPACE, units

from bfinfra.model.compare import Change
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Step
from bfinfra.render import text
from bfinfra.render.style import Style


@dataclass(frozen=True, kw_only=True)
class Named(Step):
    """Create {name}."""

    name: str


def test_a_plan_shows_each_item_its_steps_and_exactly_the_changed_fields(plan):
    assert (
        text.plan(plan, Style(units=units))
        == """\
~ update  gpu_host/esx209-161.aiml.local
    1. Reboot esx209-161.aiml.local  [reboots: passthrough becomes active only then]
       passthrough.0.count: 1 → 2

+ create  supervisor_namespace/cnasg
    1. Create the namespace cnasg on the cluster compute
       limits.cpu: 48GHz
       limits.memory: 384GiB
       vm_classes: [best-effort-xlarge]

~ update  token_secret/cluster-01-default
    1. Write the secret tokens
       namespaces: [default] → [default, gpu]
       digest: scrypt$a → (known after tanzu_cluster/cluster-01: digest)
    2. Write the secret seal

- delete  bitfusion_server/bf-00
    destroys what can't be recovered
    deletes what is not this site's: vm/other-people's
    1. Destroy the virtual machine bf-00

singapore-poc: 1 to create, 2 to update, 1 to delete, 1 up to date."""
    )


def test_problems_come_last_next_to_the_prompt(broken):
    assert (
        text.plan(broken)
        == """\
~ update  gpu_host/esx209-161.aiml.local
    1. Reboot esx209-161.aiml.local  [reboots: passthrough becomes active only then]
       passthrough.0.count: 1 → 2

vcsa.aiml.local:443: warning: the certificate ends in 9 days
  next: renew it

token_secret can't be read: cluster-01 does not answer

site.yaml:12:5: error: unknown field limts
      limts: {cpu: 48GHz}
      ^^^^^
  why: a namespace has no such field
  next: did you mean limits?

singapore-poc: 1 to update, 1 unreadable, 1 problem. Correct the above before an apply."""
    )


def test_a_server_that_does_not_answer_is_one_sentence_whatever_lives_there(broken):
    blind = replace(
        broken,
        unreadable={
            **{f"kind_{n}": "vcsa:443 does not answer" for n in range(17)},
            **{f"gpu_host/h{n}": "vcsa:443 does not answer" for n in range(6)},
        },
    )
    assert text.unreadable(blind) == (
        "gpu_host/h0, gpu_host/h1, gpu_host/h2, gpu_host/h3 and 2 more can't be read: vcsa:443 does not "
        "answer. "
        "Neither can resources that the file no longer contains."
    )
    assert "6 unreadable" in text.counts(blind)


def test_agreement_says_that_there_is_nothing_to_do(plan):
    agreed = replace(
        plan, items=(Item(NAMESPACE, Action.KEEP), Item(Key("bitfusion_token", "t"), Action.READ))
    )
    assert text.plan(agreed) == "singapore-poc: 2 up to date. Nothing to do."


def test_what_is_kept_is_listed_when_asked(plan):
    assert "= keep    tanzu_cluster/cluster-01" in text.plan(plan, Style(verbose=True))
    assert "tanzu_cluster/cluster-01\n" not in text.plan(plan)


def test_an_empty_site_with_nothing_left_is_shown_in_words():
    assert (
        text.plan(Plan("s", ())) == "The site has no resources, and none of its objects exist: nothing to do."
    )


def test_what_can_not_be_read_for_one_reason_is_one_line(broken):
    blind = replace(
        broken,
        items=(),
        problems=(),
        warnings=(),
        unreadable={"a/x": "no answer", "b": "denied", "a/y": "no answer"},
    )
    assert text.unreadable(blind) == "a/x, a/y can't be read: no answer\nb can't be read: denied"


def test_colours_only_when_wanted(plan):
    assert "\x1b" not in text.plan(plan)
    assert "\x1b[32m+ create  \x1b[0m\x1b[1msupervisor_namespace/cnasg\x1b[0m" in text.plan(
        plan, Style(colour=True)
    )


def test_a_name_can_not_act_on_the_terminal(plan):
    evil = "a\x1b]0;owned\x07\x1b[2J\u202egpj.exe\r\n"
    bad = Item(
        Key("vm", evil),
        Action.CREATE,
        (Named(name=evil, changes=(Change(evil, None, {evil: evil}), Change("list", evil, [evil]))),),
        (),
        (evil,),
    )
    shown = text.plan(Plan(evil, (bad,), unreadable={evil: evil}))
    assert not {c for c in shown if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e"} - {"\n"}
    assert "a\\x1b]0;owned\\x07\\x1b[2J\\u202egpj.exe\\r\\n" in shown


def test_settings_that_are_up_to_date_are_kept_and_a_source_is_read(plan):
    host, token = Key("gpu_host", "esx1"), Key("bitfusion_token", "t")
    items = (Item(host, Action.READ, settings=True), Item(token, Action.READ))
    lines = text.plan(replace(plan, items=items), Style(verbose=True)).splitlines()
    assert "= keep    gpu_host/esx1" in lines
    assert "? read    bitfusion_token/t" in lines
