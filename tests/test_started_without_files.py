"""A site that is started before its appliance and its token are there: each run does what it can, and says what
to bring.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kinds.lifecycle import apply, drift, endings, plan, world
from pyVim.task import WaitForTask
from rights.given import administrator

import bfinfra
import bfinfra.sandbox
from bfinfra.cli.execute import EXITS
from bfinfra.model.drift import Cause
from bfinfra.render import drift as drift_text
from bfinfra.render import summary, text
from bfinfra.sandbox.factories.token import make_token

pytestmark = pytest.mark.thorough

SPECS = Path(__file__).parents[1] / "specs"
SITE = SPECS / "singapore-poc.yaml"
OVA, TOKEN = "downloads/bitfusion-server-3.0.0-11.ova", "tokens/2BgkZdN.tar"
OVA_WAITS = f"""\
… waits   bitfusion_server/bf-01
    {OVA} is not there yet  (SPECS/singapore-poc.yaml:19:17)
    why: what needs it waits; existing objects are compared with the digest noted when they were made
    next: download the appliance from the vendor's site (Bitfusion's server OVA), and put it at SPECS/{OVA}; \
then run: bfinfra apply SITE
"""
TOKEN_WAITS = f"""\
… waits   bitfusion_token/cnasg
    {TOKEN} is not there yet  (SPECS/singapore-poc.yaml:34:25)
    why: what needs it waits; existing objects are compared with the digest noted when they were made
    next: once the Bitfusion server runs, open vCenter, Bitfusion in the Plugins section, Tokens; select an enabled \
token (NEW TOKEN makes one), DOWNLOAD its tar, and put it at SPECS/{TOKEN}; then run: bfinfra apply SITE
"""
SECRET_WAITS = """\
… waits   token_secret/cluster-01-default
    waits for bitfusion_token/cnasg
    1. write token cnasg to namespace default in cluster-01
       content in default: (known after tokens/2BgkZdN.tar is there: digest)
"""
MADE_WITHOUT = (
    "client_image/pytorch-mock-bitfusion",
    "gpu_host/esx209-161.aiml.local",
    "supervisor_namespace/cnasg",
    "tanzu_cluster/cluster-01",
    "registry_credential/cred-pytorch-mock-bitfusion",
)
BEHIND_TOKEN = ("token_secret/cluster-01-default", "workload/pytorch-mock")


@dataclass
class Poc:
    """The PoC's sandbox, and a place for files that are away."""

    sandbox: bfinfra.sandbox.Running
    away: Path

    def take(self, *names: str) -> None:
        for name in names:
            shutil.move(Path(self.sandbox.files) / name, self.away / Path(name).name)

    def bring(self, name: str) -> None:
        shutil.move(self.away / Path(name).name, Path(self.sandbox.files) / name)

    def apply(self, **how) -> tuple[int, dict[str, str], str]:
        """Exit code, ending by address, the words at the end."""
        outcome = apply(SITE, self.sandbox, **how)
        return EXITS.get(outcome.ending, 1), endings(outcome), words(summary.outcome(outcome))


def words(output: str) -> str:
    """Without what differs from run to run."""
    output = re.sub(r"\d+ writes in \d+ requests", "N writes", output.replace(str(SPECS), "SPECS"))
    return re.sub(r"  0\.\ds$", "", re.sub(r" in [\d.]+s:", " in T:", output), flags=re.MULTILINE)


@pytest.fixture
def poc(tmp_path) -> Iterator[Poc]:
    state = tmp_path / "poc"
    state.mkdir()
    (state / "away").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(state / "state"))
        running = bfinfra.sandbox.start(SPECS / "worlds/singapore-poc.yaml", state / "sandbox", pace=0)
        running.before = world(running)
        found = Poc(running, state / "away")
        found.take(OVA, TOKEN)
        yield found
        bfinfra.sandbox.stop(state / "sandbox")


def validate_warns_of_what_is_not_there_yet(poc):
    warned = [w.problem.what for w in bfinfra.load(SITE, sandbox=poc.sandbox).warnings]
    assert warned == [
        f"bitfusion_server/bf-01: {OVA} is not there yet",
        f"bitfusion_token/cnasg: {TOKEN} is not there yet",
    ]


def a_plan_shows_what_waits_and_for_which_file_and_plans_all_else(poc):
    found = plan(SITE, poc.sandbox)
    output = words(text.plan(found))
    assert OVA_WAITS in output
    assert TOKEN_WAITS in output
    assert SECRET_WAITS in output
    assert output.endswith("singapore-poc: 4 to create, 1 to update, 4 waiting.")
    assert "warning:" not in output
    assert {str(item.key) for item in found.pending} == set(MADE_WITHOUT)


def drift_of_a_site_that_was_not_applied_tells_that_it_is_not_there(poc):
    found = {str(each.key): each for each in drift(SITE, poc.sandbox).found}
    assert found["bitfusion_server/bf-01"].cause is Cause.MISSING
    assert (
        found["bitfusion_server/bf-01"].why
        == f"it was never applied, or somebody deleted it; {OVA} is not there yet"
    )
    assert found["token_secret/cluster-01-default"].why.endswith(
        "somebody deleted it; waits for bitfusion_token/cnasg"
    )


def a_first_apply_makes_what_needs_no_file_and_says_what_to_bring(poc):
    code, ended, output = poc.apply()
    assert code == 3
    assert {address for address, how in ended.items() if how == "done"} == set(MADE_WITHOUT)
    assert all(
        ended[address].startswith("still-waiting") for address in ("bitfusion_server/bf-01", *BEHIND_TOKEN)
    )
    assert output.endswith("""\
… still waiting token_secret/cluster-01-default
      waits for bitfusion_token/cnasg
… still waiting workload/pytorch-mock
      waits for token_secret/cluster-01-default

singapore-poc: still waiting in T: 4 created, 1 updated, 4 still waiting. N writes.
Nothing is broken. Bring what is named above, then run the same command again: what is done stays done, \
only what waited is done.""")


def with_the_appliance_its_server_is_made_and_only_the_token_is_asked_for(poc):
    poc.bring(OVA)
    code, ended, output = poc.apply()
    assert code == 3
    assert ended["bitfusion_server/bf-01"] == "done"
    assert f"{TOKEN} is not there yet" in output
    assert OVA not in output
    assert all(ended[address].startswith("still-waiting") for address in BEHIND_TOKEN)


def a_misspelt_name_is_reported_with_the_nearest_one(poc, tmp_path):
    token = Path(poc.sandbox.files) / "tokens/2BgkZdN-1.tar"
    make_token(token)
    site = edited(tmp_path, (TOKEN, "tokens/2BgkZdN-2.tar"))
    shutil.copytree(token.parent, tmp_path / "tokens")
    (held,) = (
        item.held for item in plan(site, poc.sandbox).items if str(item.key) == "bitfusion_token/cnasg"
    )
    assert held.what == "bitfusion_token/cnasg: tokens/2BgkZdN-2.tar is not there yet"
    assert held.next.startswith("did you mean 2BgkZdN-1.tar? Else once the Bitfusion server runs")
    token.unlink()


def a_file_that_is_there_but_broken_is_an_error_before_the_first_write(poc):
    token, before = Path(poc.sandbox.files) / TOKEN, poc.sandbox.tally()["written"]
    make_token(token, broken="not pem")
    with pytest.raises(bfinfra.BfinfraError, match="the token can't be used"):
        poc.apply()
    token.unlink()
    token.mkdir()
    with pytest.raises(bfinfra.BfinfraError, match="the token can't be used"):
        poc.apply()
    token.rmdir()
    assert poc.sandbox.tally()["written"] == before


def with_the_token_the_site_is_done_and_stays_so(poc):
    poc.bring(TOKEN)
    code, ended, output = poc.apply()
    assert (code, {ended[address] for address in BEHIND_TOKEN}) == (0, {"done"})
    assert "singapore-poc: done in T: 2 created, 7 up to date." in output
    before = poc.sandbox.tally()["written"]
    assert (poc.apply()[0], poc.sandbox.tally()["written"]) == (0, before)


def drift_compares_with_what_was_noted_when_the_files_are_away_again(poc):
    poc.take(OVA, TOKEN)
    found = drift(SITE, poc.sandbox)
    assert (found.found, found.agreed, found.blind) == ((), 8, False)
    assert [w.problem.what for w in found.warnings] == [
        f"bitfusion_server/bf-01: {OVA} is not there yet",
        f"bitfusion_token/cnasg: {TOKEN} is not there yet",
    ]
    assert drift_text.text(found).endswith("singapore-poc: no drift: 8 resources up to date.")


def what_moved_in_the_world_is_drift_and_mended_while_the_files_are_away(poc):
    with administrator(poc.sandbox) as si:
        (vm,) = [
            each for each in si.content.rootFolder.childEntity[0].vmFolder.childEntity if each.name == "bf-01"
        ]
        WaitForTask(vm.PowerOffVM_Task())
    found = {(str(each.key), each.field): each.cause for each in drift(SITE, poc.sandbox).found}
    assert found == {("bitfusion_server/bf-01", "power"): Cause.DRIFT}
    code, ended, _ = poc.apply()
    assert (code, ended["bitfusion_server/bf-01"]) == (3, "done")


def an_apply_without_the_files_keeps_what_stands_and_asks_for_the_token_alone(poc):
    before = poc.sandbox.tally()["written"]
    code, ended, _ = poc.apply()
    assert code == 3
    assert [address for address, how in ended.items() if how != "kept"] == ["bitfusion_token/cnasg"]
    assert poc.sandbox.tally()["written"] == before


def what_the_file_changed_waits_for_the_file_that_it_takes(poc, tmp_path):
    changed = edited(
        tmp_path,
        ("token: cnasg, namespaces: [default]", "token: cnasg, namespaces: [kube-system, default]"),
        ("server-3.0.0-11.ova", "server-3.0.0-12.ova"),
    )
    held = {str(item.key): item for item in plan(changed, poc.sandbox).held}
    assert held["token_secret/cluster-01-default"].steps
    assert held["bitfusion_server/bf-01"].held.what.endswith("server-3.0.0-12.ova is not there yet")
    found = {str(each.key): each for each in drift(changed, poc.sandbox).found}
    assert {address: each.cause for address, each in found.items()} == dict.fromkeys(
        ("token_secret/cluster-01-default", "bitfusion_server/bf-01"), Cause.UNAPPLIED
    )
    assert found["bitfusion_server/bf-01"].why.startswith("the file changed; downloads/")


def destroy_needs_no_file_and_leaves_the_world_as_it_was(poc):
    code, ended, _ = poc.apply(destroy=True)
    assert (code, set(ended.values())) == (0, {"done"})
    assert world(poc.sandbox) == poc.sandbox.before


def edited(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    output = SITE.read_text()
    for old, new in changes:
        assert output.count(old) == 1, old
        output = output.replace(old, new)
    (tmp_path / "manifests").symlink_to(SPECS / "manifests")
    path = tmp_path / "site.yaml"
    path.write_text(output)
    return path


def test_a_site_started_without_appliance_and_token_is_finished_once_both_exist_and_destroyed_without_them(
    poc, tmp_path
):
    validate_warns_of_what_is_not_there_yet(poc)
    a_plan_shows_what_waits_and_for_which_file_and_plans_all_else(poc)
    drift_of_a_site_that_was_not_applied_tells_that_it_is_not_there(poc)
    a_first_apply_makes_what_needs_no_file_and_says_what_to_bring(poc)
    with_the_appliance_its_server_is_made_and_only_the_token_is_asked_for(poc)
    (own := tmp_path / "misspelt").mkdir()
    a_misspelt_name_is_reported_with_the_nearest_one(poc, own)
    a_file_that_is_there_but_broken_is_an_error_before_the_first_write(poc)
    with_the_token_the_site_is_done_and_stays_so(poc)
    drift_compares_with_what_was_noted_when_the_files_are_away_again(poc)
    what_moved_in_the_world_is_drift_and_mended_while_the_files_are_away(poc)
    an_apply_without_the_files_keeps_what_stands_and_asks_for_the_token_alone(poc)
    (own := tmp_path / "the").mkdir()
    what_the_file_changed_waits_for_the_file_that_it_takes(poc, own)
    destroy_needs_no_file_and_leaves_the_world_as_it_was(poc)
