"""What several kinds in Kubernetes clusters share."""
