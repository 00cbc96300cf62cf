"""Rebuilds the Spec that was last applied, from the fields that a mark holds."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from bfinfra.model.mark import Mark
from bfinfra.model.order import AFTER
from bfinfra.model.plan import plain
from bfinfra.model.resource import Spec


def spec_of(model: type[Spec], applied: Mapping[str, object], written: Spec | None) -> Spec:
    """Returns the spec with these applied fields. Fields that `written` still has unchanged are taken from
    it, so that files and secrets are found where they were. Raises ValidationError.
    """
    now = plain(written.applied()) if written is not None else {}
    same = {name: getattr(written, name) for name in applied if name in now and now[name] == applied[name]}
    return model.model_validate({**applied, **same})


def as_applied(model: type[Spec], mark: Mark | None, written: Spec | None) -> Spec | None:
    """Returns the spec as it was last applied, with the `after:` of the file, which no mark holds; `written`
    where the mark holds nothing readable.
    """
    applied = mark.applied if mark is not None else None
    if applied is None or (written is not None and written.applied() == applied):
        return written
    try:
        return spec_of(model, {**applied, AFTER: written.after if written is not None else ()}, written)
    except ValidationError:
        return written
