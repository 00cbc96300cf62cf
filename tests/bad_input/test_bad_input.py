"""Bad input in the site and its files: a clear error that names the place, exit 1, and nothing written."""

from __future__ import annotations

import tarfile

import pytest
from bad_input.desk import CLUSTER, HEAD, HOST, NAMESPACE, SERVER, Desk, but

import bfinfra
from bfinfra import kinds as registry
from bfinfra.engine import journal
from bfinfra.engine.graph import sort
from bfinfra.model.refs import kinds_named
from bfinfra.sandbox.factories.ova import link, make_ova, member
from bfinfra.sandbox.factories.token import make_token

TOKEN = """\
bitfusion_token:
  team-a-token: {source: {tar: broken.tar}}
token_secret:
  cluster-01-default: {cluster: cluster-01, token: team-a-token, namespaces: [default]}
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ("site.yaml:1:1: error: the site has no name",)),
        ("site: [", ("site.yaml:2:1: error: this is not YAML",)),
        (
            HEAD + but(NAMESPACE, ("cluster:", "clutser:")),
            (
                "site.yaml:9:5: error: supervisor_namespace/team-a: there is no field clutser",
                "did you mean cluster?",
            ),
        ),
        (
            but(HEAD + NAMESPACE, ("supervisor_namespace", "supervisor_namspace")),
            (
                "site.yaml:7:1: error: there is no kind supervisor_namspace",
                "did you mean supervisor_namespace?",
            ),
        ),
        (
            HEAD + NAMESPACE + but(CLUSTER, ("namespace: team-a", "namespace: team-b")),
            (
                (
                    "site.yaml:14:16: error: tanzu_cluster/cluster-01: namespace names team-b, and there is "
                    "no such supervisor_namespace"
                ),
                "did you mean team-a?",
            ),
        ),
        (
            but(HEAD, ("{env: VCENTER_PASSWORD}", "hunter2")) + NAMESPACE,
            (
                "site.yaml:5:13: error: vcenter: password: write a reference, never the secret itself",
                "{env: NAME}",
            ),
        ),
        (
            but(HEAD, ("VCENTER_PASSWORD", "NOT_SET")) + NAMESPACE,
            (
                "site.yaml:5:3: error: the site: vcenter.password leads nowhere",
                "the environment variable NOT_SET is not set",
                "export NOT_SET",
            ),
        ),
    ],
)
def test_problems_that_the_files_alone_show(desk: Desk, text, says):
    desk.refuses(text, *says)


def test_an_authority_of_vcenter_that_leads_nowhere_is_waited_for_and_nothing_is_written(desk: Desk):
    desk.sandbox.clear_tally()
    found = desk.run("apply", but(HEAD, ("ca.pem", "nowhere.pem")) + NAMESPACE)
    assert found.code == 3
    assert desk.sandbox.tally()["written"] == 0
    assert "nowhere.pem is not there yet" in found.out
    assert "site.yaml:8:3" in found.out


def test_no_two_kinds_can_name_each_other_so_no_site_holds_a_circle():
    """The message about a circle is tested with kinds of their own in tests/spec."""
    kinds = {name: registry.kind(name) for name in registry.names()}
    place = {
        name: number
        for number, name in enumerate(
            sort({name: tuple(kinds_named(kind.Spec) - {name}) for name, kind in kinds.items()})
        )
    }
    named = {(name, other) for name, kind in kinds.items() for other in kinds_named(kind.Spec)}
    assert ("bitfusion_server", "gpu_host") in named
    assert all(
        place[other] < place[name] for name, other in named if other != name
    )  # servers name their first one


def test_a_literal_secret_is_not_printed_either(desk: Desk):
    for text in (
        but(HEAD, ("{env: VCENTER_PASSWORD}", "hunter2")) + NAMESPACE,
        HEAD
        + HOST
        + but(SERVER, ("customer_password: {env: VCENTER_PASSWORD}", "customer_password: hunter2")),
    ):
        assert "hunter2" not in desk.refuses(text, "secret", "write a reference")


def test_validate_reports_the_same_without_a_server(desk: Desk):
    desk.refuses(
        HEAD + but(NAMESPACE, ("cluster:", "clutser:")), "there is no field clutser", verb="validate"
    )
    assert desk.sandbox.tally()["total"] == 0


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("truncated", "it is cut short: broken-disk2.vmdk should end at byte"),
        ("traversal", "it holds a file called '../outside.vmdk'"),
        ("link", "it holds a symbolic link: link.vmdk"),
        ("wrong digest", "is damaged; its SHA256 is"),
        ("no descriptor", "it holds no OVF descriptor"),
        ("entity bomb", "its descriptor is no XML"),
        ("duplicate", "twice"),
    ],
)
def test_an_ova_that_is_not_whole_is_refused_before_its_host_is_touched(desk: Desk, broken, says):
    make_ova(desk.folder / "broken.ova", disk=1 << 14, broken=broken)
    shown = desk.refuses(
        HEAD + HOST + but(SERVER, ("server.ova", "broken.ova")),
        "site.yaml:13:17: error: bitfusion_server/bf-01: the OVA broken.ova can't be used",
        says,
    )
    assert "next: " in shown


def test_an_ova_that_is_not_the_one_asked_for_is_refused(desk: Desk):
    desk.refuses(
        HEAD + HOST + but(SERVER, ("server.ova", f"server.ova, sha256: {'ab' * 32}")),
        "it is not the expected file; its SHA-256 is ",
        "abab",
        ", expected ",
    )


def test_an_ova_that_was_damaged_later_never_costs_the_existing_server(desk: Desk):
    make_ova(desk.folder / "mine.ova", disk=1 << 14)
    text = HEAD + HOST + but(SERVER, ("server.ova", "mine.ova"))
    desk.made(text)
    make_ova(desk.folder / "mine.ova", disk=1 << 14, version="4.0", broken="wrong digest")
    desk.refuses(text, "the OVA mine.ova can't be used", "is damaged")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("      customer_password: {env: VCENTER_PASSWORD}\n", ""),
            (
                ":18:5: error",
                "the OVA's property customer_password",
                "is missing",
                "write properties: {customer_password: …}",
            ),
        ),
        (
            ("customer_password:", "custmer_password:"),
            (":20:7: error", "the OVA has no property custmer_password", "did you mean customer_password?"),
        ),
        (
            ("network: VM Network", "network: VM Netwrk"),
            (":17:28: error", "there is no network VM Netwrk on esx1.small.test", "did you mean VM Network?"),
        ),
        (
            ("    gpus: 1\n", "    gpus: 1\n    datastore: locl\n"),
            (
                ":16:16: error",
                "there is no datastore locl that esx1.small.test reaches",
                "did you mean local?",
            ),
        ),
        (
            ("    gpus: 1\n", "    gpus: 1\n    datastore: shared\n"),
            ("there is no datastore shared that esx1.small.test reaches", "there are: local"),
        ),
        (
            ("    gpus: 1\n", "    gpus: 1\n    folder: gpu/x\n"),
            ("there is no VM folder gpu/x", "make it first"),
        ),
        (
            ("    gpus: 1\n", "    gpus: 1\n    resource_pool: gpu\n"),
            ("there is no resource pool gpu", "make it first"),
        ),
    ],
)
def test_what_a_server_names_and_nobody_has(desk: Desk, change, says):
    desk.refuses(HEAD + HOST + but(SERVER, change), "site.yaml", "bitfusion_server/bf-01", *says)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            "extra file",
            (
                "broken.tar holds run.sh, which is not part of a token",
                "a token has only ca.crt, client.yaml, servers.conf",
            ),
        ),
        (
            "link",
            ("broken.tar is not a token, as it holds a symbolic link, ca.pem", "download the token again"),
        ),
        (
            "traversal",
            (
                "broken.tar is not a token, as it holds a file called '../client.yaml'",
                "download the token again",
            ),
        ),
        ("missing file", ("has no client.yaml", "download the token again")),
        ("no blank", ("lacks the blank after `reachable:`", "write `reachable: ADDRESS`")),
        ("not pem", ("ca.crt contains no certificate",)),
        ("expired", ("certificate authority (ca.crt) ended on", "download a new token")),
    ],
)
def test_a_token_that_can_t_be_used_stops_everything_that_leads_to_it(desk: Desk, broken, says):
    make_token(desk.folder / "broken.tar", broken=broken)
    desk.refuses(
        HEAD + NAMESPACE + CLUSTER + TOKEN,
        "site.yaml:19:18: error: bitfusion_token/team-a-token: the token can't be used",
        *says,
    )


def test_a_link_under_a_token_s_own_name_is_not_followed(desk: Desk):
    with tarfile.open(desk.folder / "broken.tar", "w") as tar:
        tar.addfile(link("ca.crt", "/etc/hostname"))
        tar.addfile(member("client.yaml", 0))
    desk.refuses(
        HEAD + NAMESPACE + CLUSTER + TOKEN,
        "broken.tar is not a token, as it holds a symbolic link, ca.crt",
        "download the token again",
    )


def test_a_second_apply_says_who_runs_the_first(desk: Desk):
    site = desk.folder / "site.yaml"
    site.write_text(HEAD + NAMESPACE)
    with journal.lock(journal.scope(bfinfra.load(site, sandbox=desk.sandbox))):
        desk.refuses(
            HEAD + NAMESPACE,
            "/lock: error: another apply of example runs on this machine",
            "process ",
            "wait for it",
        )


def test_what_is_protected_stays_until_the_file_says_otherwise(desk: Desk):
    text = HEAD + NAMESPACE + "    protect: true\n"
    desk.made(text)
    desk.refuses(
        text,
        "site.yaml:12:14: error: supervisor_namespace/team-a: it is protected",
        "protect: false",
        verb="destroy",
    )
    desk.refuses(
        HEAD,
        "supervisor_namespace/team-a: it is protected",
        "write it with protect: false and apply that first",
    )


def test_deleting_wants_to_be_allowed(desk: Desk):
    desk.made(HEAD + NAMESPACE)
    desk.refuses(
        HEAD,
        "the plan would delete supervisor_namespace/team-a",
        "--allow-delete supervisor_namespace/team-a",
        options=("--yes",),
    )
    desk.refuses(
        HEAD, "needs a confirmation, and there is no terminal to ask on", "bfinfra plan SITE", options=()
    )


def test_a_site_s_name_is_one_word(desk: Desk):
    desk.refuses("site: a b\n", "site.yaml:1:7: error: site: expected a name", "allowed: letters")
