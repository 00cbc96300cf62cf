"""How the tests of printed rights change it."""

from __future__ import annotations

from pathlib import Path

import yaml
from kinds.lifecycle import SPECS
from rights.given import other
from rights.life import Life

from bfinfra.model.refs import Key
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running

HELLO = SPECS / "manifests/hello.yaml"


def hello(sandbox: Running, use: Use) -> None:
    """Somebody starts the example's job, which the apply adopts."""
    if use is Use.APPLY:
        other(sandbox).call(
            "POST", "/apis/batch/v1/namespaces/default/jobs", yaml.safe_load(HELLO.read_text())
        )


LIFE = Life(
    prepare=hello,
    adopted=frozenset({Key("workload", "hello")}),
    changes=((str(HELLO), str(Path(__file__).with_name("again.yaml"))),),
)
