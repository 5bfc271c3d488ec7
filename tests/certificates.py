"""Certificates for tests: one authority, and what it issues, as files in PEM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509

from quorate.quorum.rpc.tls.issuing import Issued, issue, new_authority

HOSTS = ("localhost", "127.0.0.1")
ALICE = "CN=alice,OU=eng,O=Acme,C=DE"


@cache
def authority(name: str = "test authority") -> Issued:
    """Return an authority with this name, the same one for all tests of the process."""
    return new_authority(name, datetime.now(UTC), 30)


def certificate(
    subject: str,
    *,
    by: Issued | None = None,
    expired: bool = False,
    hosts: Sequence[str] = HOSTS,
    uris: Sequence[str] = (),
) -> Issued:
    """Return a certificate for `hosts`, by default those of this machine."""
    now = datetime.now(UTC) - timedelta(days=9 if expired else 0)
    name = x509.Name.from_rfc4514_string(subject)
    return issue(by or authority(), name, now, 7, hosts=hosts, uris=uris)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one certificate, and of the authority that the others must have."""

    keystore: Path
    key: Path
    certificate: Path
    ca: Path


def files(directory: Path, issued: Issued, ca: Issued | None = None) -> Files:
    """Write a certificate and its key into a new `directory`."""
    directory.mkdir()
    found = Files(*(directory / name for name in ("keystore.pem", "key.pem", "cert.pem", "ca.pem")))
    found.keystore.write_bytes(issued.keystore_pem)
    found.key.write_bytes(issued.key_pem)
    found.certificate.write_bytes(issued.certificate_pem)
    found.ca.write_bytes((ca or authority()).certificate_pem)
    return found
