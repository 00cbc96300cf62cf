"""What the supervisors' API may answer."""

from __future__ import annotations

import pytest

from bfinfra.backends.vcenter.supervisors import Supervisors
from bfinfra.model.errors import Malformed


class Silent:
    """An API that answers with nothing, as vcsim does for a cluster that it calls a supervisor's."""

    server = "vc.example.org"

    def get(self, path: str) -> None:
        return None


def test_an_empty_answer_is_one_sentence() -> None:
    with pytest.raises(Malformed) as caught:
        Supervisors(Silent()).read(["domain-c8"])
    assert str(caught.value).startswith(
        "vc.example.org: the answer about the supervisor on domain-c8 is empty;"
    )
    assert "NoneType" not in str(caught.value)
