"""The Bitfusion device plug-in and its webhook in a cluster. (Bitfusion on Kubernetes.)"""
