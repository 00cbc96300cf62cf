"""Code that several kinds in Kubernetes clusters share."""
