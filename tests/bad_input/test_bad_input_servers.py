"""Servers that don't answer, aren't trusted or have less than is asked for: a clear error, exit 1, and
nothing written.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import tarfile

import httpx2
import pytest
from bad_input.desk import CLUSTER, HEAD, HOST, NAMESPACE, SERVER, Desk, but, unmark

from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Unreachable
from bfinfra.model.trust import Trust
from bfinfra.sandbox.factories.token import make_token

pytestmark = pytest.mark.thorough

PIN = ":".join(["AB"] * 32)
BAD_CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: {of}, resources: {{requests: {{storage: {size}}}}}}}
"""


@pytest.mark.parametrize(
    "change", [("{env: VCENTER_PASSWORD}", "{file: password}"), ("admin@small.test", "nobody@small.test")]
)
def test_a_refused_login_is_one_error_for_both_apis(desk: Desk, change):
    desk.write("wrong", "password")
    shown = desk.refuses(
        but(HEAD, change) + NAMESPACE + HOST,
        "supervisor_namespace/team-a",
        "gpu_host/esx1.small.test",
        "vc.small.test: vCenter refused the login of ",
        "check vcenter.username, and what vcenter.password refers to",
    )
    assert shown.count("error:") == 1
    assert "wrong\n" not in shown


def fingerprint(desk: Desk) -> str:
    """What the sandbox's vCenter shows, asked with the standard library."""
    where = desk.sandbox.lookup("vc.small.test", 443)
    context = ssl.create_default_context(cafile=str(desk.sandbox.ca_file))
    with (
        socket.create_connection(where, 5) as plain,
        context.wrap_socket(plain, server_hostname="vc.small.test") as tls,
    ):
        digest = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def test_a_wrong_pin_shows_both_fingerprints_and_how_to_accept(desk: Desk):
    shown = fingerprint(desk)
    text = but(HEAD, ("{ca_file: ca.pem}", f'{{sha256: "{PIN}"}}')) + NAMESPACE
    desk.refuses(
        text,
        "vc.small.test:443: the server's certificate is not the pinned one",
        f"it shows SHA-256 {shown}",
        f"the site pins {PIN}",
        "write it as trust: {sha256: …}",
    )
    desk.made(but(text, (PIN, shown)))


def test_another_authority_is_refused_with_the_fingerprint_to_compare(desk: Desk):
    make_token(desk.folder / "other.tar")
    with tarfile.open(desk.folder / "other.tar") as tar, tar.extractfile("ca.crt") as pem:
        desk.write(pem.read().decode(), "other.pem")
    desk.refuses(
        but(HEAD, ("ca.pem", "other.pem")) + NAMESPACE,
        "the server's certificate is not trusted",
        f"it shows SHA-256 {fingerprint(desk)}",
        "trust: {ca_file: …}",
    )


def test_an_authority_that_is_none(desk: Desk):
    desk.write("hello", "hello.pem")
    desk.refuses(
        but(HEAD, ("ca.pem", "hello.pem")) + NAMESPACE,
        "hello.pem can't be used; no certificate in PEM form in it",
    )


def test_a_server_that_refuses_connections():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable) as raised:
        Transport().client(f"https://127.0.0.1:{port}", Trust(sha256=PIN)).get("/")
    assert f"127.0.0.1:{port}: no connection; Connection refused" in str(raised.value)
    assert "check the address" in str(raised.value)


@pytest.mark.parametrize("server", ["vc.smll.test", "127.0.0.1:8443", "localhost:8443"])
def test_a_server_that_nobody_knows_never_leads_out_of_the_sandbox(desk: Desk, server: str):
    where = server if ":" in server else f"{server}:443"
    desk.refuses(
        but(HEAD, ("vc.small.test", server)) + NAMESPACE, f"{where}: the sandbox has no such address"
    )


def test_a_server_that_takes_connections_and_says_nothing(monkeypatch):
    monkeypatch.setattr("bfinfra.backends.transport.TIMEOUT", httpx2.Timeout(0.05))
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(Unreachable, match=r"no connection; .*timed out"),
    ):
        Transport().client(f"https://127.0.0.1:{silent.getsockname()[1]}", Trust(sha256=PIN)).get("/")


def test_a_name_that_does_not_resolve(monkeypatch):
    def unknown(*_args, **_how):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(
        Unreachable, match=r"vc.example:443: no connection; Name or service not known; check the address"
    ):
        Transport().client("https://vc.example", Trust(sha256=PIN)).get("/")


@pytest.mark.parametrize("fault", [{"status": 503}, "reset_before"])
def test_a_server_that_is_ill_is_asked_again_and_then_left_alone(desk: Desk, fault):
    desk.sandbox.faults({"api": "*", "do": fault})
    desk.refuses(HEAD + NAMESPACE, "supervisor_namespace/team-a", "can't be read", "nothing was written")


@pytest.mark.parametrize(
    ("host", "server", "says"),
    [
        (
            ("0x1eb8}", "0x1eb8, count: 3}"),
            (),
            (
                "site.yaml:9:19",
                "gpu_host/esx1.small.test: 3 × 10de:1eb8 are wanted, and 1 can be had",
                "lower count",
            ),
        ),
        (
            ("0x1eb8", "0x1db6"),
            (),
            ("the host has no PCI device 10de:1db6", "10de:1eb8 TU104GL [Tesla T4] at 0000:3b:00.0"),
        ),
        (
            ("vendor: 0x10de, device: 0x1eb8", "address: '0000:3c:00.0'"),
            (),
            ("site.yaml:9:29", "no PCI device 0000:3c:00.0", "did you mean 0000:3b:00.0?"),
        ),
        (
            ("esx1.", "esx9."),
            ("esx1.", "esx9."),
            (
                "site.yaml:8:3: error: gpu_host/esx9.small.test: there is no host esx9.small.test",
                "did you mean esx",
            ),
        ),
        (
            ("    reboot", "    cluster: frm\n    reboot"),
            (),
            ("site.yaml:10:14", "there is no cluster frm", "did you mean farm?"),
        ),
        (
            ("", ""),
            ("gpus: 1", "gpus: 2"),
            (
                "site.yaml:15:11",
                "bitfusion_server/bf-01: it needs 2 GPUs, and only 1 is to be had on esx1.small.test",
                "lower gpus",
            ),
        ),
    ],
)
def test_more_gpus_than_there_are(desk: Desk, host, server, says):
    desk.refuses(HEAD + but(HOST, host) + (but(SERVER, server) if server else SERVER), *says)


def test_two_servers_that_want_more_gpus_than_there_are(desk: Desk):
    second = but(SERVER.split("\n", 1)[1], ("bf-01", "bf-02"), ("0.5/", "0.6/"))
    desk.refuses(
        HEAD + HOST + SERVER + second,
        "bitfusion_server/bf-02: it needs 1 GPU, and none is to be had",
        "passes 1 through; bitfusion_server/bf-01 takes 1",
    )


def test_gpus_that_another_vm_holds(desk: Desk):
    desk.made(HEAD + HOST + SERVER)
    unmark(desk, HEAD + HOST + SERVER)
    desk.refuses(
        HEAD + HOST + but(SERVER, ("bf-01:", "bf-02:")),
        "gpu_host/esx1.small.test: 1 × 10de:1eb8 is wanted, and none can be had",
        "the VM bf-01 holds 0000:3b:00.0",
        "bitfusion_server/bf-02: gpu_host/esx1.small.test does not have the cards",
        "correct gpu_host/esx1.small.test first",
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("[best-effort-small]", "[best-effort-smal]"),
            ("site.yaml:11:18", "there is no VM class best-effort-smal", "did you mean best-effort-small?"),
        ),
        (("gold", "goldd"), ("site.yaml:10:22", "there is no storage policy goldd", "did you mean gold?")),
        (
            ("    storage", "    content_libraries: [tkrr]\n    storage"),
            ("site.yaml:10:25", "there is no content library tkrr", "did you mean tkr?"),
        ),
        (
            ("compute", "compote"),
            ("site.yaml:9:14", "no supervisor runs on a cluster compote", "did you mean compute?"),
        ),
        (("compute", "farm"), ("no supervisor runs on a cluster farm", "there are: compute")),
        (
            ("    storage", "    limits: {storage: 50GiB}\n    storage"),
            (
                "site.yaml:11:21",
                "100GiB of gold is more than the namespace's limit of 50GiB",
                "raise limits.storage",
            ),
        ),
    ],
)
def test_what_a_namespace_can_t_have(desk: Desk, change, says):
    desk.refuses(HEAD + but(NAMESPACE, change), "supervisor_namespace/team-a", *says)


@pytest.mark.parametrize(
    ("namespace", "cluster", "says"),
    [
        (
            (),
            (("best-effort-small", "best-effort-big"),),
            (
                "site.yaml:16:41",
                "supervisor_namespace/team-a offers no VM class best-effort-big",
                "did you mean best-effort-small?",
            ),
        ),
        (
            (("    vm_classes: [best-effort-small]\n", ""),),
            (),
            (
                "the namespace team-a offers no VM class best-effort-small",
                "add it to the namespace's vm_classes",
            ),
        ),
        (
            (),
            (("storage_class: gold", "storage_class: silver"),),
            (
                "site.yaml:16:75",
                "supervisor_namespace/team-a offers no storage class silver",
                "there are: gold",
            ),
        ),
        (
            (),
            (("v1.20.2", "v1.25.7"),),
            ("site.yaml:15:14", "the supervisor has no release v1.25.7", "there are: v1.20.2, v1.21.2"),
        ),
        (
            (),
            (("gold}}", "gold, volumes: {data: {mount_path: /data, capacity: 101GiB}}}}"),),
            (
                "take 101GiB of gold; the namespace team-a may use 100GiB",
                "1 nodes × 101GiB",
                "raise storage.gold",
            ),
        ),
        (
            (("best-effort", "guaranteed"), ("    storage", "    limits: {memory: 8GiB}\n    storage")),
            (("best-effort", "guaranteed"), ("workers: {count: 1", "workers: {count: 5")),
            (
                "its nodes reserve 24GiB of memory; the namespace team-a may use 8GiB",
                "6 × guaranteed-small with 4GiB each",
                "raise limits.memory",
            ),
        ),
        (
            (("best-effort", "guaranteed"), ("    storage", "    limits: {cpu: 8GHz}\n    storage")),
            (("best-effort", "guaranteed"),),
            ("reserve 10GHz of CPU; the namespace team-a may use 8GHz", "raise limits.cpu"),
        ),
        (
            (("best-effort", "guaranteed"),),
            (("best-effort", "guaranteed"), ("workers: {count: 1", "workers: {count: 100")),
            ("reserve 404GiB of memory; the hosts of compute have 128GiB", "add hosts to compute"),
        ),
        (
            (("best-effort", "guaranteed"),),
            (("best-effort", "guaranteed"), ("workers: {count: 1", "workers: {count: 10")),
            ("reserve 55GHz of CPU; the hosts of compute have 40GHz",),
        ),
    ],
)
def test_a_cluster_that_can_never_run_is_refused_before_its_namespace_is_made(
    desk: Desk, namespace, cluster, says
):
    desk.refuses(
        HEAD + but(NAMESPACE, *namespace) + but(CLUSTER, *cluster), "tanzu_cluster/cluster-01", *says
    )


def test_a_change_that_can_t_be_is_refused_like_a_new_cluster(desk: Desk):
    text = HEAD + NAMESPACE + CLUSTER
    desk.made(text)
    desk.refuses(
        but(text, ("version: v1.20.2", "version: v1.19.7")), "v1.19.7 is older", "a cluster can't go back"
    )
    more = but(
        text,
        ("vm_classes: [", "vm_classes: [guaranteed-small, "),
        ("workers: {count: 1, vm_class: best-effort", "workers: {count: 40, vm_class: guaranteed"),
    )
    desk.refuses(more, "reserve 160GiB of memory; the hosts of compute have 128GiB")


@pytest.mark.parametrize("where", ["team-a", "cluster-01"])
@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (
            {"of": "gold", "size": "200Gi"},
            "its claims take 200GiB of gold; the namespace team-a may use 100GiB",
        ),
        ({"of": "silver", "size": "1Gi"}, "a claim wants the storage class silver"),
    ],
)
def test_claims_that_can_never_be_met(desk: Desk, where, claim, says):
    desk.write(BAD_CLAIM.format(**claim), "claim.yaml")
    workload = f"workload:\n  train:\n    cluster: {where}\n    manifest: claim.yaml\n"
    desk.refuses(HEAD + NAMESPACE + CLUSTER + workload, "site.yaml:21:15: error: workload/train", says)
