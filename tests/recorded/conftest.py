"""What held, counted by source: `held(source, wrong, of)` fails with what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from recorded.plugin import COUNTED

Held = Callable[[str, Sequence[str], int], None]


@pytest.fixture
def held(request: pytest.FixtureRequest) -> Held:
    """Counts for the summary, then fails where anything of so many is wrong, or where there was nothing to
    judge.
    """

    def count(source: str, wrong: Sequence[str], of: int) -> None:
        request.node.user_properties.append((COUNTED, (source, of - len(wrong), of)))
        assert of, f"{source}: there was nothing to judge"
        assert not wrong, f"{source}: {len(wrong)} of {of} differ:\n" + "\n".join(wrong[:20])

    return count
