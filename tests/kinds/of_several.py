"""Says beside a test which settings it tries with several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def of_several(*settings: str) -> Callable[[F], F]:
    """Decorates a test that tries these settings with two or more, and fails where code ignores one of them.

    A setting is `kind.field`, or `--option`. tests/kinds/test_settings_of_several.py wants a test for each.
    """
    return lambda test: test
