"""The embedded world: servers on loopback that speak the real wire protocols, in a process of their own."""
