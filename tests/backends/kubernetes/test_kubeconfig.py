from __future__ import annotations

import base64
import json

import pytest
import yaml

from bfinfra.backends.kubernetes import Clusters, kubeconfig
from bfinfra.backends.transport import Transport
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def config(user=None, **cluster):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {
                "name": "k",
                "cluster": {
                    "server": "https://h:6443",
                    "certificate-authority-data": base64.b64encode(PEM.encode()).decode(),
                    **cluster,
                },
            }
        ],
        "users": [{"name": "u", "user": {"token": "t0k"} if user is None else user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }


def secret(text):
    return Secret("env", "K", Sources(env={"K": text if isinstance(text, str) else json.dumps(text)}))


def test_a_token_and_an_embedded_authority():
    access = kubeconfig.read(secret(config()))
    assert (access.url, access.token, access.trust.ca_pem) == ("https://h:6443", "t0k", PEM)
    assert "t0k" not in repr(access)


def test_files_are_found_beside_the_kubeconfig(tmp_path):
    for name in ("ca.pem", "c.pem", "k.pem"):
        (tmp_path / name).write_text(name)
    written = config(
        {"client-certificate": "c.pem", "client-key": "k.pem"},
        **{"certificate-authority-data": "", "certificate-authority": "ca.pem"},
    )
    (tmp_path / "config").write_text(json.dumps(written))
    access = kubeconfig.read(Secret("file", "config", Sources(base=tmp_path)))
    assert access.identity == ("c.pem", "k.pem")
    assert access.trust.ca_pem == "ca.pem"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (config({"exec": {"command": "rm"}}), "exec"),
        (config({"auth-provider": {"name": "x"}}), "auth-provider"),
        (config({"username": "u", "password": "p"}), "no passwords"),
        (config(**{"insecure-skip-tls-verify": True}), "verification"),
        (config(**{"proxy-url": "http://p"}), "proxy-url"),
        (config(server="http://h"), "https"),
        (config({}), "neither a token"),
        (config({"client-certificate-data": "!!", "client-key-data": "!!"}), "base64"),
        ({**config(), "current-context": ""}, "current-context"),
        ({**config(), "current-context": "other"}, "no entry other"),
        ({**config(), "contexts": "x"}, "no entry c"),
        ("just text", "kind Config"),
        ("{[s3cret", "not YAML"),
        ("x" * (1 << 21), "larger"),
    ],
)
def test_what_can_not_be_used_safely_is_refused_without_its_content(text, says):
    with pytest.raises(Refusal, match=says) as refused:
        kubeconfig.read(secret(text))
    assert "s3cret" not in str(refused.value)
    assert refused.value.problems[0].next


def test_a_client_certificate_gets_in(cluster, api, clusters):
    """The sandbox knows its users by token only, so that the certificate is put to the test on the real
    server.
    """
    user = api.config["users"][0]["user"]
    access = kubeconfig.read(api.secret())
    assert bool(access.identity) == ("client-certificate" in user)
    assert cluster.version()


def of_machine(written):
    return Secret.of_machine("admin.conf of gpu-01", json.dumps(written))


@pytest.mark.parametrize("named", ["/etc/passwd", "~/.ssh/id_ed25519", "beside"])
@pytest.mark.parametrize("field", ["tokenFile", "client-key", "client-certificate"])
def test_a_machine_s_kubeconfig_reads_no_file_of_this_one(field, named):
    written = config({"client-certificate-data": "QQ==", "client-key-data": "QQ=="} | {field: named})
    if field != "tokenFile":
        del written["users"][0]["user"][f"{field}-data"]
    with pytest.raises(Refusal, match=r"admin\.conf of gpu-01.*names a file"):
        kubeconfig.read(of_machine(written))
    authority = config(**{"certificate-authority": named})
    del authority["clusters"][0]["cluster"]["certificate-authority-data"]
    with pytest.raises(Refusal, match="names a file"):
        kubeconfig.read(of_machine(authority))


@pytest.mark.parametrize(
    ("user", "proof"),
    [
        ({"token": "t0k"}, {"token": "t0k"}),
        (
            {"client-certificate-data": "QQ==", "client-key-data": "Qg=="},
            {"client-certificate-data": "QQ==", "client-key-data": "Qg=="},
        ),
    ],
)
def test_a_machine_s_kubeconfig_is_handed_on_without_the_programs_that_it_names(user, proof):
    written = config(user)
    runs = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch"}}
    written["users"].append({"name": "other", "user": runs})
    written["contexts"].append({"name": "other", "context": {"cluster": "k", "user": "other"}})
    written["extensions"] = [{"name": "x", "extension": runs}]
    text = Clusters(Transport(), None).kubeconfig(Endpoint(kubeconfig=of_machine(written)))
    assert "exec" not in text
    found = yaml.safe_load(text)
    (each,) = found["users"]
    assert each["user"] == proof
    assert found["clusters"][0]["cluster"] == written["clusters"][0]["cluster"]
    assert kubeconfig.read(secret(text)).url == "https://h:6443"


def test_a_machine_s_kubeconfig_whose_own_login_is_a_program_is_refused():
    written = of_machine(config({"exec": {"command": "touch"}}))
    with pytest.raises(Refusal, match="it would run a program"):
        Clusters(Transport(), None).kubeconfig(Endpoint(kubeconfig=written))
