"""The directory of a certificate authority: its key, its certificate, and what it has issued.

Each file is complete and durable before it gets its name. A node that follows the file of its
keystore therefore never reads half of one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from quorate.cli.client.errors import Refused
from quorate.quorum.rpc.tls.issuing import Issued, issue, new_authority

PRIVATE, PUBLIC = 0o600, 0o644
DIRECTORY = 0o700
KEYSTORE = "keystore.pem"
"""The key of a node or a client, and its certificate."""


class Names(NamedTuple):
    """The names of a certificate: hosts and addresses, and URIs."""

    hosts: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


class AuthorityDir:
    """The files below one directory. All methods block, and raise Refused if a file cannot be
    read, written or used."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.certificate = root / "ca.pem"
        self._key = root / "ca.key"

    def create(self, name: str, days: int) -> None:
        """Create an authority that is valid for `days`. Raise Refused if there is one."""
        if self.certificate.exists() or self._key.exists():
            raise Refused(f"{self.root} has a certificate authority already")
        made = new_authority(name, datetime.now(UTC), days)
        write(self._key, made.key_pem, PRIVATE)
        write(self.certificate, made.certificate_pem, PUBLIC)

    def issue(
        self, directory: str, common_name: str, days: int, names: Names, *, renew: bool
    ) -> Path:
        """Write the keystore of a new certificate into a directory of its own, and return its path.

        Without `renew`, there must be none yet. With it, there must be one. Where `names` has none,
        the new certificate has the names of the one before."""
        keystore = self.root / directory / KEYSTORE
        if renew and not keystore.exists():
            raise Refused(f"{keystore} does not exist, so it cannot be renewed")
        if not renew and keystore.exists():
            raise Refused(f"{keystore} exists already. --renew replaces it")
        before = names_of(keystore) if renew else Names()
        hosts, uris = names.hosts or before.hosts, names.uris or before.uris
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
        try:
            now = datetime.now(UTC)
            made = issue(self._authority(), subject, now, days, hosts=hosts, uris=uris)
        except ValueError as error:  # a certificate cannot have such a name
            raise Refused(f"--host: value {', '.join(hosts)!r}: {error}") from None
        write(keystore.with_name("key.pem"), made.key_pem, PRIVATE)
        write(keystore.with_name("cert.pem"), made.certificate_pem, PUBLIC)
        write(keystore, made.keystore_pem, PRIVATE)
        return keystore

    def _authority(self) -> Issued:
        try:
            key = load_pem_private_key(self._key.read_bytes(), None)
            certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise Refused(f"{self.root}: {error}. `quorate certs authority` creates one") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise Refused(f"{self._key} is not a key that `quorate certs authority` has made")
        return Issued(key, certificate)


def names_of(keystore: Path) -> Names:
    """Return the names in the certificate of a keystore."""
    try:
        (found, *_) = x509.load_pem_x509_certificates(keystore.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names()
    except (OSError, ValueError) as error:
        raise Refused(f"{keystore}: {error}") from None
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return Names(
        hosts=(*names.get_values_for_type(x509.DNSName), *addresses),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
    )


def write(path: Path, content: bytes, mode: int) -> None:
    """Write a file atomically with these permissions. It is durable on return. Missing directories
    are created for the owner only."""
    try:
        path.parent.mkdir(DIRECTORY, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        parent = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        raise Refused(f"{path}: {error}") from None
