"""A session's views are kept and read again and again; one that is gone is made anew, never taken for an
empty world.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, refs
from bfinfra.sandbox import Running

SITE = """
site: views
vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
"""


@pytest.fixture
def vcenter(sandbox: Running, tmp_path) -> Iterator[VCenter]:
    (tmp_path / "site.yaml").write_text(SITE)
    transport = Transport(route=sandbox.lookup, read_only=True)
    made = VCenter(bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox).vcenter, transport)
    yield made
    made.close()
    transport.close()


def views(vcenter: VCenter) -> list:
    return list(vcenter.session.read(refs.views).values())


def test_one_view_serves_every_reading_of_its_types(vcenter):
    first = vcenter.hosts.notes("bfinfra")
    assert vcenter.hosts.notes("bfinfra") == first
    assert set(first) == {"esx1.small.test", "esx2.small.test"}
    assert len(views(vcenter)) == 1


def test_a_view_that_is_gone_is_made_anew(vcenter):
    before = vcenter.hosts.notes("bfinfra")
    (view,) = views(vcenter)
    view.DestroyView()
    assert vcenter.hosts.notes("bfinfra") == before
    assert views(vcenter) != [view]


def test_a_session_that_ended_takes_its_views_along(vcenter, sandbox):
    before = vcenter.hosts.notes("bfinfra")
    (view,) = views(vcenter)
    sandbox.expire()
    assert vcenter.hosts.notes("bfinfra") == before
    assert views(vcenter) != [view]
