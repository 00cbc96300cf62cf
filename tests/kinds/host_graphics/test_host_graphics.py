"""How hosts share their GPUs: each value is set by itself, and put back as it was."""

from __future__ import annotations

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from pyVmomi import vim
from rights.given import administrator

CARD = "0000:3b:00.0"


def host(si):
    return si.content.searchIndex.FindByInventoryPath("/dc/host/farm/esx1.small.test")


def graphics(sandbox):
    with administrator(sandbox) as si:
        found = host(si).config.graphicsConfig
        (card,) = found.deviceType
        return (
            found.hostDefaultGraphicsType,
            found.sharedPassthruAssignmentPolicy,
            card.graphicsType,
            card.vgpuMode,
        )


def written(tmp_path, **fields):
    site = yaml.safe_load(EXAMPLES["host_graphics"].read_text())
    site["host_graphics"]["vgpu"] = {"hosts": ["esx1.small.test"], **fields}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    return tmp_path / "site.yaml"


def test_what_is_not_written_stays_as_somebody_set_it(sandbox, tmp_path):
    with administrator(sandbox) as si:
        theirs = vim.host.GraphicsConfig(
            hostDefaultGraphicsType="shared",
            sharedPassthruAssignmentPolicy="consolidation",
            deviceType=[
                vim.host.GraphicsConfig.DeviceType(
                    deviceId=CARD, graphicsType="sharedDirect", vgpuMode="mixedSize"
                )
            ],
        )
        host(si).configManager.graphicsManager.UpdateGraphicsConfig(theirs)
    path = written(tmp_path, type="sharedDirect")
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert graphics(sandbox) == ("sharedDirect", "consolidation", "sharedDirect", "mixedSize")
    assert made(apply(path, sandbox, destroy=True))
    assert graphics(sandbox) == ("shared", "consolidation", "sharedDirect", "mixedSize")


def test_each_value_is_a_step_and_what_is_no_longer_written_is_put_back(sandbox, tmp_path):
    all_of_them = {
        "placement": "consolidation",
        "cards": {CARD: {"type": "sharedDirect", "mode": "mixedSize"}},
    }
    found = plan(written(tmp_path, **all_of_them), sandbox)
    late = ", for vGPUs that start once the host or its X.Org service has restarted"
    assert [step.title() for item in found.pending for step in item.steps] == [
        f"set the graphics type of esx1.small.test to sharedDirect{late}",
        "set the graphics placement of esx1.small.test to consolidation",
        f"set the graphics type {CARD} of esx1.small.test to sharedDirect{late}",
        f"set the graphics mode {CARD} of esx1.small.test to mixedSize",
    ]
    assert made(apply(written(tmp_path, **all_of_them), sandbox))
    assert graphics(sandbox) == ("sharedDirect", "consolidation", "sharedDirect", "mixedSize")
    assert made(apply(written(tmp_path), sandbox))
    assert graphics(sandbox) == ("sharedDirect", "performance", "shared", "sameSize")


def test_a_card_that_is_not_there_is_refused(sandbox, tmp_path):
    (problem,) = map(
        str, plan(written(tmp_path, cards={"0000:ff:00.0": {"mode": "sameSize"}}), sandbox).problems
    )
    assert "esx1.small.test has no mode 0000:ff:00.0" in problem


@pytest.mark.parametrize("wrong", [{"type": "own"}, {"placement": "dense"}, {"cards": {"3b": {}}}])
def test_other_words_are_refused(sandbox, tmp_path, wrong):
    with pytest.raises(Exception, match="host_graphics"):
        plan(written(tmp_path, **wrong), sandbox)


CHANGED_FIELDS = [{"placement": "performance"}, {"cards": {}}, {"cards": {CARD: {"type": "sharedDirect"}}}]
