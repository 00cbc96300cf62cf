"""Parts of bfinfra that are installed on request: `pip install "bfinfra[EXTRA]"`."""

from __future__ import annotations

from bfinfra.model.errors import BfinfraError, Problem


def missing(what: str, extra: str, error: ModuleNotFoundError) -> BfinfraError:
    """The problem of a package that is not installed. `what` needs it; `extra` contains it."""
    return BfinfraError(
        Problem(
            f"{what} needs bfinfra[{extra}]",
            why=f"the package of {error.name} is not installed",
            next=f'pip install "bfinfra[{extra}]"',
        )
    )
