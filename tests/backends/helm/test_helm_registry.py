"""Charts of a registry: by digest, with an account, from a private authority, once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from oci_registry import Registry, running

from bfinfra.backends.helm import Charts, OciChart, kept
from bfinfra.backends.transport import Transport
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile, Sources
from bfinfra.model.trust import Trust

ARCHIVE = b"an archive" * 100_000


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    with running(tmp_path) as found:
        yield found


@pytest.fixture
def charts() -> Iterator[Charts]:
    transport = Transport(read_only=True)
    yield Charts(transport)
    transport.close()


def chart(registry: Registry, digest: str) -> OciChart:
    trust = Trust(ca_file=LocalFile("ca.pem", registry.ca_file))
    return OciChart(registry.server, "charts/demo", digest, trust=trust)


def with_account(of: OciChart, folder: Path, password: str) -> OciChart:
    (folder / "password").write_text(password)
    return replace(of, username="me", password=Secret("file", "password", Sources(folder)))


def test_a_chart_is_pulled_once_and_kept(registry, charts):
    digest = registry.chart(ARCHIVE)
    with pytest.raises(ValueError, match="was not pulled yet"):
        kept(digest)
    charts.pull(chart(registry, digest))
    path, _ = kept(digest)
    assert path.read_bytes() == ARCHIVE
    asked = len(registry.asked)
    charts.pull(chart(registry, digest))
    assert len(registry.asked) == asked


def test_what_somebody_changed_in_the_folder_is_pulled_again(registry, charts):
    digest = registry.chart(ARCHIVE)
    charts.pull(chart(registry, digest))
    path, _ = kept(digest)
    path.write_bytes(b"other")
    with pytest.raises(ValueError, match="was not pulled yet"):
        kept(digest)
    charts.pull(chart(registry, digest))
    assert kept(digest)[0].read_bytes() == ARCHIVE


def test_an_account_gets_a_token_that_is_not_sent_elsewhere(registry, charts, tmp_path):
    registry.account, registry.moved = ("me", "hush"), True
    digest = registry.chart(ARCHIVE)
    charts.pull(with_account(chart(registry, digest), tmp_path, "hush"))
    assert [scheme for _, scheme in registry.asked] == ["", "Basic", "Bearer", "Bearer", ""]


@pytest.mark.parametrize(("password", "why"), [("", "wants another account"), ("no", "refuses me")])
def test_who_may_not_pull_reads_what_to_do_and_no_password(registry, charts, tmp_path, password, why):
    registry.account = ("me", "hush")
    found = chart(registry, registry.chart(ARCHIVE))
    with pytest.raises(ValueError, match=why) as error:
        charts.pull(with_account(found, tmp_path, password) if password else found)
    assert "hush" not in str(error.value)


def test_other_content_than_the_digest_names_is_refused(registry, charts):
    digest = registry.chart(ARCHIVE)
    layer = next(each for each, content in registry.blobs.items() if content == ARCHIVE)
    registry.blobs[layer] = b"x" * len(ARCHIVE)
    with pytest.raises(ValueError, match="answers other content than"):
        charts.pull(chart(registry, digest))


def test_what_is_no_chart_and_what_is_not_there_are_named(registry, charts):
    with pytest.raises(ValueError, match="is no Helm chart"):
        charts.pull(chart(registry, registry.chart(ARCHIVE, "application/vnd.oci.image.layer.v1.tar+gzip")))
    with pytest.raises(ValueError, match="not that of the archive"):
        charts.pull(chart(registry, f"sha256:{'0' * 64}"))


def test_a_registry_that_is_not_trusted_or_away_is_one_sentence_with_a_next_step(registry, charts):
    found = chart(registry, registry.chart(ARCHIVE))
    for wrong in (replace(found, trust=Trust()), replace(found, registry="127.0.0.1:9")):
        with pytest.raises(ValueError, match="or get the archive with helm pull elsewhere") as error:
            charts.pull(wrong)
        assert "\n" not in str(error.value)
