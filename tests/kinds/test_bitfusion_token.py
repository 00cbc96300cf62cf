from __future__ import annotations

import pytest
from pydantic import ValidationError

from bfinfra.kinds.bitfusion_token import BitfusionToken, Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around
from bfinfra.model.mark import Mark
from bfinfra.model.sources import LocalFile
from bfinfra.sandbox.makers.token import BROKEN, make_token


def look(path, broken=""):
    make_token(path, broken=broken)
    spec = Spec.model_validate({"source": {"tar": LocalFile("t.tar", path)}})
    return spec, BitfusionToken().observe({"t": spec}, {})


def decide(spec, seen):
    return BitfusionToken.steps("t", spec, seen.states.get("t"), Around(Mark("s", "bitfusion_token/t"), facts=seen.facts))


def test_a_good_token_has_no_steps_and_shows_its_servers_but_not_its_content(tmp_path):
    spec, seen = look(tmp_path / "t.tar")
    assert decide(spec, seen) == ()
    assert seen.states["t"].servers == (("172.24.210.80", 56001),)
    assert "BEGIN" not in repr(seen)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_bad_or_expired_token_is_refused_at_its_source_with_what_to_do(tmp_path, broken):
    with pytest.raises(Refusal) as refused:
        decide(*look(tmp_path / "t.tar", broken))
    assert refused.value.field == "source"
    assert refused.value.problems[0].next


@pytest.mark.parametrize("source", [{}, {"tar": "a", "folder": "b"}])
def test_exactly_one_source(source):
    with pytest.raises(ValidationError):
        Spec.model_validate({"source": source})
