"""Model -> Plan: which nodes run native, in which kernels, over which bytes. Frozen plain data."""
