"""The hosts of ACLs and clients, compared as addresses instead of texts.

Java writes an IPv6 address in full (`0:0:0:0:0:0:0:1`), and Python in short (`::1`). A client that
arrives over IPv4 at a socket for both has a mapped address (`::ffff:10.0.0.1`). Each pair is one
host.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from quorate.quorum.protocol.acl_codes import WILDCARD


def canonical_host(host: str) -> str:
    """Return one text for all texts of the same address. A text that is no address is returned
    unchanged."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def covers(acl_host: str, canonical: str) -> bool:
    """Return True if an ACL with `acl_host` is about the host with the text `canonical`.

    Only an IPv6 address has several texts. Others are not parsed, because a decision may look at
    the ACLs of 10,000 hosts."""
    if acl_host in (WILDCARD, canonical):
        return True
    return ":" in acl_host and canonical_host(acl_host) == canonical
