"""A host whose GPUs are passed through to VMs. (Bitfusion server guide: toggle passthrough, reboot the
host.)
"""
