"""A Tanzu Kubernetes cluster in a supervisor namespace. (Kubernetes setup, figures 7 to 11.)"""
