"""Options of clusters' DRS: set beside those of others, and put back as they were."""

from __future__ import annotations

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

KEY, OTHER = "VgpuMMAutomationTimeoutSecs", "TryBalanceVmsPerHost"


def options(sandbox):
    with administrator(sandbox) as si:
        cluster = si.content.searchIndex.FindByInventoryPath("/dc/host/farm")
        return {each.key: each.value for each in cluster.configurationEx.drsConfig.option}


def somebody_sets(sandbox, key, value):
    spec = vim.cluster.ConfigSpecEx(
        drsConfig=vim.cluster.DrsConfigInfo(option=[vim.option.OptionValue(key=key, value=value)])
    )
    with administrator(sandbox) as si:
        cluster = si.content.searchIndex.FindByInventoryPath("/dc/host/farm")
        WaitForTask(cluster.ReconfigureComputeResource_Task(spec, modify=True))


@pytest.mark.parametrize("before", [None, "7200"])
def test_an_option_is_set_beside_others_and_put_back_as_it_was(sandbox, before):
    somebody_sets(sandbox, OTHER, "1")
    if before:
        somebody_sets(sandbox, KEY, before)
    first = options(sandbox)
    outcome = apply(EXAMPLES["cluster_option"], sandbox)
    assert made(outcome), endings(outcome)
    assert options(sandbox) == {OTHER: "1", KEY: "-1"}
    outcome = apply(EXAMPLES["cluster_option"], sandbox, destroy=True)
    assert made(outcome), endings(outcome)
    assert options(sandbox) == first


def test_another_value_is_drift_and_is_mended(sandbox):
    assert made(apply(EXAMPLES["cluster_option"], sandbox))
    somebody_sets(sandbox, KEY, "60")
    (found,) = drift(EXAMPLES["cluster_option"], sandbox).found
    assert (str(found.key), found.field) == ("cluster_option/evacuate", "clusters.farm")
    assert made(apply(EXAMPLES["cluster_option"], sandbox))
    assert options(sandbox)[KEY] == "-1"


def test_a_cluster_that_is_not_there_is_refused_with_the_nearest_name(sandbox, tmp_path):
    site = yaml.safe_load(EXAMPLES["cluster_option"].read_text())
    site["cluster_option"]["evacuate"]["clusters"] = ["fram"]
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    (problem,) = map(str, plan(tmp_path / "site.yaml", sandbox).problems)
    assert "there is no cluster fram" in problem
    assert "farm" in problem


CHANGED_FIELDS = [{"value": "3600"}, {"key": OTHER}, {"clusters": ["compute"]}]
