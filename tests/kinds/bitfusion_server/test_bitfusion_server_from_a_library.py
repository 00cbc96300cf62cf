"""Servers from a content library, on the sandbox: what is there is never uploaded again, and no host is
spoken to.
"""

from __future__ import annotations

import json

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan

from bfinfra.backends.vcenter import upload
from bfinfra.sandbox.factories.ova import make_ova

pytestmark = pytest.mark.thorough

LIBRARY = {"name": "appliances", "datastore": "local"}


@pytest.fixture
def site(tmp_path):
    """The smallest site with a server, from a library; `add` writes further servers without GPUs."""

    class Site:
        path = tmp_path / "site.yaml"

        def write(self, *more: str, library: object = LIBRARY) -> None:
            text = (
                EXAMPLES["bitfusion_server"]
                .read_text()
                .replace("    ova: {file", f"    library: {json.dumps(library)}\n    ova: {{file")
            )
            server = yaml.safe_load(text)["bitfusion_server"]["bf-01"] | {"gpus": 0}
            first, _, _ = text.partition("\n  zz")
            network = {"network": "VM Network", "address": "10.2.0.{}/24", "gateway": "10.2.0.1"}
            for number, name in enumerate(more, 6):
                given = server | {"networks": {"Network 1": network | {"address": f"10.2.0.{number}/24"}}}
                first += f"  {name}: {json.dumps(given)}\n"
            self.path.write_text(first)

    made = Site()
    made.write()
    return made


def uploads(sandbox) -> tuple[int, int]:
    """To the library, to hosts."""
    calls = [(name, count) for api in sandbox.tally()["calls"].values() for name, count in api.items()]
    return sum(count for name, count in calls if name.startswith("PUT /cls/data/")), sum(
        count for name, count in calls if "/nfc/" in name
    )


def done(outcome) -> None:
    assert made(outcome), endings(outcome)


def test_the_first_server_fills_the_library_and_the_second_uploads_nothing(site, sandbox):
    done(apply(site.path, sandbox))
    assert uploads(sandbox) == (3, 0), "the descriptor and two disks, to vCenter itself"
    assert plan(site.path, sandbox).pending == ()
    site.write("bf-02", "bf-03")
    done(apply(site.path, sandbox))
    assert uploads(sandbox) == (3, 0)
    assert plan(site.path, sandbox).pending == ()


def test_a_server_from_the_library_is_the_same_as_one_that_was_imported(site, sandbox):
    done(apply(site.path, sandbox))
    without = site.path.with_name("without.yaml")
    without.write_text(
        "\n".join(line for line in site.path.read_text().splitlines() if "library:" not in line)
    )
    changes = {
        change.field.partition(".")[0] for item in plan(without, sandbox).pending for change in item.changes
    }
    assert changes == {"library"}, "only the committed mark differs"


def test_what_goes_and_comes_again_uploads_nothing(site, sandbox):
    done(apply(site.path, sandbox))
    done(apply(site.path, sandbox, destroy=True))
    done(apply(site.path, sandbox))
    assert uploads(sandbox) == (3, 0)


def test_a_deployment_that_fails_is_tried_again_without_an_upload(site, sandbox):
    sandbox.faults({"api": "rest", "method": "POST /api/vcenter/ovf/*", "nth": 1, "do": {"status": 503}})
    done(apply(site.path, sandbox))
    assert uploads(sandbox) == (3, 0)


def test_a_disk_that_breaks_off_is_sent_again_within_its_session(site, sandbox, monkeypatch):
    monkeypatch.setattr(upload, "PAUSE", 0.01)
    sandbox.faults({"api": "rest", "method": "PUT /cls/data/*", "nth": 2, "do": {"reset": "before"}})
    done(apply(site.path, sandbox))
    assert (uploads(sandbox), plan(site.path, sandbox).pending) == ((4, 0), ())


def test_the_next_apply_starts_an_upload_anew_that_was_given_up(site, sandbox, monkeypatch):
    monkeypatch.setattr(upload, "PAUSE", 0.01)
    sandbox.faults({"api": "rest", "method": "PUT /cls/data/*", "do": {"status": 403}})
    assert "the upload of" in endings(apply(site.path, sandbox))["bitfusion_server/bf-01"]
    assert [vm for vm in json.dumps(sandbox.world()).split('"') if vm == "bf-01"] == []
    sandbox.clear_faults()
    done(apply(site.path, sandbox))
    assert plan(site.path, sandbox).pending == ()


def test_another_content_is_another_item(site, sandbox):
    done(apply(site.path, sandbox))
    done(apply(site.path, sandbox, destroy=True))
    text = site.path.read_text()
    ova = site.path.with_name("server.ova")
    make_ova(ova, version="3.0.1-1")
    site.path.write_text(text.replace("{file: server.ova}", f"{{file: {ova}}}"))
    done(apply(site.path, sandbox))
    assert uploads(sandbox) == (6, 0), "another content, another item"
    assert len(sandbox.world()["rest"]["items"]) == 2


def test_the_item_bears_its_digest_and_says_whose_it_is(site, sandbox):
    done(apply(site.path, sandbox))
    (item,) = sandbox.world()["rest"]["items"].values()
    assert item["name"].startswith("bfinfra-")
    assert len(item["name"]) == len("bfinfra-") + 64 <= 80
    assert "bfinfra keeps this appliance here" in item["description"]


def test_an_unknown_datastore_is_refused_at_its_field(site, sandbox):
    site.write(library={"name": "appliances", "datastore": "lokal"})
    (problem,) = plan(site.path, sandbox).problems
    assert "there is no datastore lokal" in problem.what
    assert "local" in problem.next
