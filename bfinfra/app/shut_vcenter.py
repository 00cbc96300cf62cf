"""A vCenter that nobody enters yet, as a file that leads into it isn't there: what lives on it waits."""

from __future__ import annotations

from typing import Any, NoReturn

from bfinfra.kinds import kind
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.kind import Observation
from bfinfra.model.site import Site

CERTIFICATE = "get the certificate of the authority that signed vCenter's"
PASSWORD = "get the password of vCenter's account from whoever runs it"  # noqa: S105 - where one gets it
HIDDEN = "nobody enters vCenter without it, and nothing that lives there is seen"


def missing_file(site: Site) -> Absent | None:
    """What to bring where a file that leads into the site's vCenter isn't there yet."""
    if site.vcenter is None:
        return None
    files = {
        site.vcenter.trust.ca_file: CERTIFICATE,
        site.vcenter.password and site.vcenter.password.file: PASSWORD,
    }
    problems = (absent(file, how, HIDDEN) for file, how in files.items() if file)
    return next((problem for problem in problems if problem), None)


def hidden(name: str, problem: Absent) -> Any:
    """The kind as it is on a vCenter that nobody enters: it sees nothing, and whatever is wanted of it
    waits.
    """
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
