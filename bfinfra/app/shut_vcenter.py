"""The kinds of a vCenter that can't be entered yet because a file is missing; their resources wait."""

from __future__ import annotations

from typing import Any, NoReturn

from bfinfra.kinds import kind
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.kind import Observation
from bfinfra.model.site import Site

CERTIFICATE = "get the certificate of the authority that signed vCenter's"
PASSWORD = "get the password of vCenter's account from its administrator"  # noqa: S105 - where one gets it
HIDDEN = "without it vCenter can't be entered, and its objects can't be read"


def missing_file(site: Site) -> Absent | None:
    """The missing file that is needed to enter the site's vCenter, or None."""
    if site.vcenter is None:
        return None
    files = {
        site.vcenter.trust.ca_file: CERTIFICATE,
        site.vcenter.password and site.vcenter.password.file: PASSWORD,
    }
    problems = (absent(file, how, HIDDEN) for file, how in files.items() if file)
    return next((problem for problem in problems if problem), None)


def hidden(name: str, problem: Absent) -> Any:
    """The kind on a vCenter that can't be entered: it observes nothing, and its desired resources wait."""
    cls = kind(name)

    def wait(*_: object) -> NoReturn:
        raise held(problem, "")

    methods = {
        "__init__": lambda _: None,
        "prefetch": (),
        "observe": lambda *_, **__: Observation({}),
        "steps": staticmethod(wait),
        "conflicts": staticmethod(lambda *_: ()),
        "reaches": True,
    }
    return type(cls.__name__, (cls,), methods)()
