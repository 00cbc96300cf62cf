"""What binds kinds to backends: each kind gets those that its constructor names; one of each is made for a
run, when first asked for.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from bfinfra.kinds import kind as kind_named
from bfinfra.model.awaited import Absent, absent, held
from bfinfra.model.errors import Problem, SiteError
from bfinfra.model.kind import Observation
from bfinfra.model.order import Specs
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.transport import Transport

CERTIFICATE = "get the certificate of the authority that signed vCenter's"
PASSWORD = "get the password of vCenter's account from whoever runs it"  # noqa: S105 - where one gets it
HIDDEN = "nobody enters vCenter without it, and nothing that lives there is seen"
MAYBE = " | None"  # of a backend that a kind can do without


def bound_to(name: str, site: Site, provide: Callable[[str], Any]) -> Any:
    """The kind, or None where the site has no vCenter and no resource that needs one."""
    cls = kind_named(name)
    backends = {k: str(parameter.annotation) for k, parameter in inspect.signature(cls).parameters.items()}
    if site.vcenter is None and "VCenter" in backends.values():
        if first := next((key for key in site.resources if key.kind == name), None):
            raise SiteError(
                Problem(
                    f"{first} lives on a vCenter, and the site names none",
                    site.place(first) or str(first),
                    next="add vcenter: with server, username, password and trust",
                )
            )
        return None
    return cls(
        **{
            k: provide(v.removesuffix(MAYBE))
            if not v.endswith(MAYBE) or _named(v.removesuffix(MAYBE), site)
            else None
            for k, v in backends.items()
        }
    )


def shut(site: Site, wanted: Specs) -> Absent | None:
    """What to bring where a file that leads into the site's vCenter isn't there yet, and something is wanted
    that lives there.
    """
    if site.vcenter is None:
        return None
    files = {
        site.vcenter.trust.ca_file: CERTIFICATE,
        site.vcenter.password and site.vcenter.password.file: PASSWORD,
    }
    found = next(
        (problem for file, how in files.items() if file and (problem := absent(file, how, HIDDEN))), None
    )
    return found if found and any(_on_vcenter(name) for name in {key.kind for key in wanted}) else None


def behind(name: str, problem: Absent) -> Any:
    """The kind where it lives on a vCenter that nobody enters: it sees nothing, and whatever is wanted of it
    waits. None for other kinds.
    """
    if not _on_vcenter(name):
        return None
    cls = kind_named(name)

    def wait(*_: object) -> NoReturn:
        raise held(problem, "")

    hidden = {
        "__init__": lambda _: None,
        "begin": lambda *_: None,
        "observe": lambda *_, **__: Observation({}),
        "steps": staticmethod(wait),
        "conflicts": staticmethod(lambda *_: ()),
        "reaches": True,
    }
    return type(cls.__name__, (cls,), hidden)()


def _on_vcenter(name: str) -> bool:
    return "VCenter" in (
        str(parameter.annotation) for parameter in inspect.signature(kind_named(name)).parameters.values()
    )


def _named(backend: str, site: Site) -> bool:
    """Whether the site names what a backend speaks to."""
    return (
        any(key.kind == "linux_host" for key in site.resources)
        if backend == "LinuxHosts"
        else site.vcenter is not None
    )


def provided(site: Site, seam: Transport) -> Callable[[str], Any]:
    """One of each backend for a run, by the name of its class, made when first asked for; the ExitStack
    closes what was made.
    """
    stack = contextlib.ExitStack()
    made: dict[str, Any] = {"Transport": seam, "Site": site, "ExitStack": stack}

    def vcenter() -> Any:
        from bfinfra.backends.vcenter.connector import Connector

        assert site.vcenter is not None
        door = Connector(site.vcenter, seam, site.name)
        door.connect()
        from bfinfra.backends.vcenter import VCenter

        made = VCenter(site.vcenter, seam, site=site.name, door=door)
        made.session.open()
        return made

    def clusters() -> Any:
        from bfinfra.backends.kubernetes import Clusters

        roots = provide("VCenter").authorities if site.vcenter else lambda: ""
        return Clusters(seam, site.vcenter, roots)

    def images() -> Any:
        from bfinfra.backends.images import Images

        return Images(site, real=not seam.routed, tally=seam.tally)

    def linux_hosts() -> Any:
        from bfinfra.backends.ansible import LinuxHosts

        return LinuxHosts(seam)

    factories = {"VCenter": vcenter, "Clusters": clusters, "Images": images, "LinuxHosts": linux_hosts}

    def provide(what: str) -> Any:
        if what not in made:
            made[what] = factories[what]()
            stack.callback(made[what].close)
        return made[what]

    return provide
