"""The sandbox's Kubernetes: API servers in memory, their controllers, and the supervisor above them."""
