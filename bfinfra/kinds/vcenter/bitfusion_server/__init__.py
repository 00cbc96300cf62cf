"""A Bitfusion server: the appliance's VM with its GPUs. (Bitfusion 3.0 partner guide, figures 1-4; KB 2142307
for the MMIO window.)
"""
