"""The document's Dockerfile, for any base image, package and users."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.formats.dockerfile import word
from bfinfra.kinds.image.client_image.spec import Spec

FILES = "bitfusion-files"  # the document's folder
WORK = "/workspace/bitfusion"
RULE = "#" + "-" * 66
TOKEN = ("client.yaml", "servers.conf", "ca.crt")
IGNORE = f"*\n!Dockerfile\n!{FILES}\n"
MOUNTED = "# The token is not in this image: a workload that names a token_secret brings its files."
MOUNTED_BEFORE = (
    "# The token is not in this image: mount a Secret with client.yaml, servers.conf and ca.crt at "
    "/etc/bitfusion,\n# as a workload does that names a token_secret."
)
"""The comment that an earlier release wrote in its place."""


def dockerfile(spec: Spec) -> str:
    """The text of the Dockerfile; the same for the same spec."""
    return "\n".join(
        (f"FROM {word(spec.base)}", "USER root", *_token(spec), *_client(spec), *_run_as(spec), "")
    )


def dockerfile_before(spec: Spec) -> str:
    """The text that an earlier release wrote for the same spec. Only a comment differs."""
    return dockerfile(spec).replace(MOUNTED, MOUNTED_BEFORE)


def _token(spec: Spec) -> Iterator[str]:
    yield from (RULE, "# Bitfusion client's files", RULE)
    if not spec.baked:
        yield MOUNTED
        yield "RUN mkdir -p /etc/bitfusion/tls"
        return
    for user, home in ((word(user), word(home)) for user, home in spec.homes.items()):
        owner = "" if user == "root" else f"--chown={user} "
        yield f"RUN mkdir -p {home}/.bitfusion" + (
            "" if user == "root" else f" && chown {user} {home}/.bitfusion"
        )
        yield f"COPY {owner}./{FILES}/client.yaml {home}/.bitfusion/client.yaml"
    yield f"COPY ./{FILES}/servers.conf /etc/bitfusion/servers.conf"
    yield "RUN mkdir -p /etc/bitfusion/tls"
    yield f"COPY ./{FILES}/ca.crt /etc/bitfusion/tls/ca.crt"


def _client(spec: Spec) -> Iterator[str]:
    package = word(spec.package_name)
    yield from (
        RULE,
        "# Bitfusion client",
        RULE,
        f"RUN mkdir -p {WORK}/batch-scripts",
        f"WORKDIR {WORK}",
        f"COPY ./{FILES}/{package} .",
    )
    if package.endswith(".deb"):
        yield "RUN apt-get update \\"
        yield f" && DEBIAN_FRONTEND=noninteractive apt-get install -y ./{package} open-vm-tools \\"
        yield f" && rm -rf /var/lib/apt/lists/* ./{package}"
    else:
        yield "RUN yum install -y epel-release \\"
        yield f" && yum install -y ./{package} open-vm-tools \\"
        yield f" && yum clean all && rm -rf /var/cache/yum ./{package}"


def _run_as(spec: Spec) -> Iterator[str]:
    others = [word(user) for user in spec.users if user != "root"]
    if others:
        yield (
            f"RUN if getent group bitfusion; then for user in {' '.join(others)}; do usermod "
            "-aG bitfusion "
            "$user; done; fi"
        )
    if spec.run_as and spec.run_as != "root":
        yield f"USER {word(spec.run_as)}"
