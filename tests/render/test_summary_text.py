"""The end of an apply."""

from __future__ import annotations

from dataclasses import replace

from render_samples import CLUSTER, HOST, NAMESPACE

from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Ending
from bfinfra.model.plan import Action
from bfinfra.render import summary
from bfinfra.render.style import Style


def test_the_summary_says_what_was_made_what_failed_and_what_to_do_next(outcome, events):
    assert (
        summary.outcome(outcome, events)
        == """\
✓ created       supervisor_namespace/cnasg  20s
        3.5s  Create the namespace cnasg
      https://172.24.206.1
      logged: run on 2 GPUs
✗ failed        gpu_host/esx209-161.aiml.local  1m 1s
      the host did not come back (esx209-161.aiml.local)
      why: no answer on port 443
      next: look at its console, then apply again
! blocked       token_secret/cluster-01-default
      waits for gpu_host/esx209-161.aiml.local
      why: which failed

singapore-poc: failed in 12m 3s: 1 created, 1 up to date, 1 failed, 1 blocked. 24 writes in 180 requests.
Correct what failed, then run the same command again: it continues with what is left."""
    )


def test_still_waiting_says_that_nothing_is_broken(outcome):
    ended = Ended(
        at=0,
        key=CLUSTER,
        action=Action.CREATE,
        ending=Ending.WAITING,
        seconds=900,
        problem=Problem("phase creating, 1 of 3 workers"),
    )
    found = replace(outcome, endings={CLUSTER: ended}, whole=Ending.WAITING, requests=0)
    assert (
        summary.outcome(found)
        == """\
… still waiting tanzu_cluster/cluster-01  15m
      phase creating, 1 of 3 workers

singapore-poc: still waiting in 12m 3s: 1 still waiting.
Nothing is broken: it takes longer than the deadline. Run the same command again to wait longer; nothing is created twice."""
    )


def test_nothing_to_do_is_one_line(outcome):
    kept = Ended(at=0, key=CLUSTER, action=Action.KEEP, ending=Ending.UNCHANGED, seconds=0.1)
    found = replace(outcome, endings={CLUSTER: kept}, whole=Ending.DONE, seconds=1.2, writes=0, requests=1)
    assert summary.outcome(found) == "singapore-poc: done in 1.2s: 1 up to date. 0 writes in 1 request."
    assert summary.outcome(found, style=Style(verbose=True)).startswith(
        "= up to date    tanzu_cluster/cluster-01\n"
    )


def test_a_kept_resource_with_an_address_is_still_shown(outcome):
    kept = Ended(
        at=0,
        key=CLUSTER,
        action=Action.KEEP,
        ending=Ending.UNCHANGED,
        seconds=0.1,
        note="https://172.24.206.5:6443",
    )
    assert "      https://172.24.206.5:6443" in summary.outcome(replace(outcome, endings={CLUSTER: kept}))


def test_remote_words_can_not_act_on_the_terminal(outcome):
    bad = Ended(
        at=0,
        key=HOST,
        action=Action.UPDATE,
        ending=Ending.FAILED,
        seconds=1,
        note="\x1b[2Jlog\r\nnext",
        problem=Problem("\x1b[8mhidden", "\x07", "\x1bc", "\x9b1m"),
    )
    shown = summary.outcome(replace(outcome, endings={NAMESPACE: bad}))
    assert not {c for c in shown if ord(c) < 32 or 0x7F <= ord(c) < 0xA0} - {"\n"}
