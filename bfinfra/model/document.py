"""The source documents: each describes manual work that a site in specs/ does."""

from __future__ import annotations

from enum import StrEnum


class Document(StrEnum):
    """A source document; its value is the name of its site in specs/."""

    SINGAPORE_POC = "singapore-poc"
    CONSOLIDATED = "consolidated-gpu-cluster"
    ON_KUBERNETES = "bitfusion-on-kubernetes"
    FLEXDIRECT = "flexdirect"
    PVRDMA = "pvrdma-rdg"

    @property
    def heading(self) -> str:
        """Its title or subject."""
        return TITLES[self]


TITLES = {
    Document.SINGAPORE_POC: "Singapore PoC: machine learning on Tanzu Kubernetes with Bitfusion",
    Document.CONSOLIDATED: "A consolidated GPU cluster for Tanzu and virtual machines",
    Document.ON_KUBERNETES: "Bitfusion on Kubernetes: device plugin and webhook",
    Document.FLEXDIRECT: "Network-attached full or partial GPUs with Bitfusion FlexDirect",
    Document.PVRDMA: "Reference deployment guide: Kubernetes with vGPU and PVRDMA",
}
