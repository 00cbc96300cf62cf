"""An apply and a destroy of one site, from two machines: neither says that it did what the other undid."""

from __future__ import annotations

from kinds.lifecycle import EXAMPLES, apply, endings, made

from bfinfra.model.events import Ended
from bfinfra.sandbox import Running


def test_an_apply_that_somebody_destroyed_meanwhile_says_so(sandbox: Running, tmp_path, monkeypatch) -> None:
    sandbox.reset()

    def destroyed_elsewhere(event: object) -> None:
        if isinstance(event, Ended) and event.problem is None:
            monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "another-machine"))
            assert made(apply(EXAMPLES["gpu_host"], sandbox, destroy=True))

    [(address, ending)] = endings(apply(EXAMPLES["gpu_host"], sandbox, on_event=destroyed_elsewhere)).items()
    assert address == "gpu_host/esx1.small.test"
    assert ending.startswith("failed: gpu_host/esx1.small.test was changed while this ran; ")
    assert "passthrough" in ending
