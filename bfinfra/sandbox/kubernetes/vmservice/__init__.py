"""The VM Service of a supervisor: virtual machines, their images and services (vm-operator's API)."""
