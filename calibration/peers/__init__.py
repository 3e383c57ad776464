"""Systems that make the same command as edgeguard, each in its best honest configuration, for ``compare_peers.py``.

One file per peer. What runs inside a peer's own process (``*_child``) needs nothing but that peer's package.
"""
