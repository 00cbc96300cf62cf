"""A server that does what an apply asks and answers nonsense: an error in words, and the next apply finds the
world as it should be.
"""

from __future__ import annotations

import pytest
from bad_input.nonsense import ANSWERS, answered, finished
from kinds.lifecycle import EXAMPLES, apply, made, world

from bfinfra.sandbox import Running


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "nth", "answer", "how"),
    [
        ("token_secret", 1, "1 GiB", "succeeded"),
        ("token_secret", 2, "another type", "error"),
        ("gpu_host", 2, "nothing", "succeeded"),
        ("gpu_host", 4, "500 with escapes", "error"),
        ("supervisor_namespace", 1, "302 elsewhere", "error"),
    ],
)
def test_a_share_of_what_script_torture_tries(
    kind: str, nth: int, answer: str, how: str, sandbox: Running
) -> None:
    assert made(apply(EXAMPLES[kind], sandbox))
    whole = world(sandbox)
    sandbox.reset()
    assert answered(EXAMPLES[kind], sandbox, nth, ANSWERS[answer]) == how
    finished(EXAMPLES[kind], sandbox, whole)
