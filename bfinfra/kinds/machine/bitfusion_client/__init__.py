"""A Bitfusion client on Linux machines: package, token, users. (Consolidated GPU cluster: enabling Bitfusion
access.)
"""
