"""The directory of a certificate authority: its key, its certificate, and what it has issued.

Each file is complete and durable before it gets its name. A node that follows the file of its
keystore therefore never reads half of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from quorate.quorum.rpc.tls.issuing import Issued, issue, new_authority
from quorate.quorum.secured.private_files import PRIVATE, PUBLIC, SecurityFileError, write

KEYSTORE = "keystore.pem"
"""The key of a node or a client, and its certificate."""


class Names(NamedTuple):
    """The names of a certificate: hosts and addresses, and URIs."""

    hosts: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


class AuthorityDir:
    """The files below one directory. All methods block, and raise SecurityFileError if a file
    cannot be read, written or used."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.certificate = root / "ca.pem"
        self.key = root / "ca.key"

    def create(self, name: str, days: int) -> None:
        """Create an authority that is valid for `days`. Raise SecurityFileError if there is one.

        An authority whose certificate is missing, because its creation was interrupted, is
        completed with the same key."""
        if self.certificate.exists():
            raise SecurityFileError(f"{self.root} has a certificate authority already")
        key = self._read_key() if self.key.exists() else None
        made = new_authority(name, datetime.now(UTC), days, key)
        write(self.key, made.key_pem, PRIVATE)
        write(self.certificate, made.certificate_pem, PUBLIC)

    def keystore(self, directory: str) -> Path:
        """Return the path of the keystore in one of the directories below."""
        return self.root / directory / KEYSTORE

    def issue(
        self, directory: str, common_name: str, days: int, names: Names, *, renew: bool
    ) -> Path:
        """Write the keystore of a new certificate into a directory of its own, and return its path.

        Without `renew`, there must be none yet. With it, there must be one. Where `names` has none,
        the new certificate has the names of the one before."""
        keystore = self.keystore(directory)
        if renew and not keystore.exists():
            raise SecurityFileError(f"{keystore} does not exist, so it cannot be renewed")
        if not renew and keystore.exists():
            raise SecurityFileError(f"{keystore} exists already. --renew replaces it")
        before = names_of(keystore) if renew else Names()
        hosts, uris = names.hosts or before.hosts, names.uris or before.uris
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
        try:
            now = datetime.now(UTC)
            made = issue(self._authority(), subject, now, days, hosts=hosts, uris=uris)
        except ValueError as error:  # a certificate cannot have such a name
            raise SecurityFileError(f"--host: value {', '.join(hosts)!r}: {error}") from None
        write(keystore.with_name("key.pem"), made.key_pem, PRIVATE)
        write(keystore.with_name("cert.pem"), made.certificate_pem, PUBLIC)
        write(keystore, made.keystore_pem, PRIVATE)
        return keystore

    def _authority(self) -> Issued:
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise SecurityFileError(
                f"{self.certificate}: {getattr(error, 'strerror', None) or error}. "
                "`quorate certs authority` creates one"
            ) from None
        return Issued(self._read_key(), certificate)

    def _read_key(self) -> ec.EllipticCurvePrivateKey:
        try:
            key = load_pem_private_key(self.key.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise SecurityFileError(f"{self.key}: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise SecurityFileError(
                f"{self.key} is not a key that `quorate certs authority` has made"
            )
        return key


def names_of(keystore: Path) -> Names:
    """Return the names in the certificate of a keystore."""
    try:
        (found, *_) = x509.load_pem_x509_certificates(keystore.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names()
    except (OSError, ValueError) as error:
        raise SecurityFileError(f"{keystore}: {error}") from None
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return Names(
        hosts=(*names.get_values_for_type(x509.DNSName), *addresses),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
    )
