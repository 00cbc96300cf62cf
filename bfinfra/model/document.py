"""The source documents: what each site in specs/ was made from."""

from __future__ import annotations

from enum import StrEnum


class Document(StrEnum):
    """A document of today's manual work; its value names the site in specs/ that does it."""

    SINGAPORE_POC = "singapore-poc"
    CONSOLIDATED = "consolidated-gpu-cluster"
    ON_KUBERNETES = "bitfusion-on-kubernetes"
    FLEXDIRECT = "flexdirect"
    PVRDMA = "pvrdma-rdg"

    @property
    def heading(self) -> str:
        """What it calls itself, or is about."""
        return TITLES[self]


TITLES = {
    Document.SINGAPORE_POC: "Singapore PoC: machine learning on Tanzu Kubernetes with Bitfusion",
    Document.CONSOLIDATED: "A consolidated GPU cluster for Tanzu and virtual machines",
    Document.ON_KUBERNETES: "Bitfusion on Kubernetes: device plugin and webhook",
    Document.FLEXDIRECT: "Network-attached full or partial GPUs with Bitfusion FlexDirect",
    Document.PVRDMA: "Reference deployment guide: Kubernetes with vGPU and PVRDMA",
}
