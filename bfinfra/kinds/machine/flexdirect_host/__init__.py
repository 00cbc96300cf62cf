"""FlexDirect on Linux machines: GPU servers with its scheduler, CPU hosts without. (Guide, steps 1 to 4.)"""
