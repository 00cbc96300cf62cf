"""A Bitfusion client in Linux machines: package, token, users. (Consolidated GPU cluster: enabling Bitfusion
access.)
"""
