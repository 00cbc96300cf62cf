"""An add-on of a cluster of the vSphere Kubernetes Service, such as its autoscaler."""
