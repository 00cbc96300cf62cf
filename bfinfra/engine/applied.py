"""A Spec as it was when it was applied, out of what a mark keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bfinfra.model.mark import Mark
from bfinfra.model.order import AFTER
from bfinfra.model.plan import plain
from bfinfra.model.resource import Spec


def spec_of(model: type[Spec], applied: Mapping[str, Any], written: Spec | None) -> Spec:
    """The spec of then: what is `written` alike today is taken as it is, so that files and secrets are found
    where they were. ValidationError.
    """
    now = plain(written.applied()) if written is not None else {}
    same = {name: getattr(written, name) for name in applied if name in now and now[name] == applied[name]}
    return model.model_validate({**applied, **same})


def as_applied(model: type[Spec], mark: Mark | None, written: Spec | None) -> Spec | None:
    """The same, with what the file says of its order, which no mark keeps; `written` where the mark tells
    nothing that can be read.
    """
    applied = mark.applied if mark is not None else None
    if applied is None or (written is not None and written.applied() == applied):
        return written
    try:
        return spec_of(model, {**applied, AFTER: written.after if written is not None else ()}, written)
    except ValidationError:
        return written
