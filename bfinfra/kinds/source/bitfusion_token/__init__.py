"""A Bitfusion client token as downloaded from the plug-in: ca.crt, client.yaml, servers.conf. (Configuration
of AI/ML application, figure 4.)
"""
