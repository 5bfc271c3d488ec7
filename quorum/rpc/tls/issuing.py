"""Makes certificate authorities and the certificates that they issue, as PEM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

DAY = timedelta(days=1)
BACKDATED = timedelta(minutes=5)
"""Certificates begin earlier by this time, because the clocks of machines differ."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def key_pem(self) -> bytes:
        """Return the key as PKCS#8 in PEM, not encrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @property
    def certificate_pem(self) -> bytes:
        """Return the certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def keystore_pem(self) -> bytes:
        """Return the key and the certificate, as a keystore in PEM has them."""
        return self.key_pem + self.certificate_pem


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key."""
    return ec.generate_private_key(ec.SECP256R1())


def new_authority(
    name: str, now: datetime, days: int, key: ec.EllipticCurvePrivateKey | None = None
) -> Issued:
    """Return a certificate authority with `key` or a new one, valid from `now` for `days` days."""
    key = key or new_key()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return Issued(key, builder.sign(key, hashes.SHA256()))


def issue(
    authority: Issued,
    subject: x509.Name,
    now: datetime,
    days: int,
    *,
    hosts: Iterable[str] = (),
    uris: Iterable[str] = (),
) -> Issued:
    """Return a certificate with a new key, for servers and for clients, issued by `authority`.

    `hosts` are the names and IP addresses under which clients reach the server. `uris` are further
    names of the subject. It is valid from `now` for `days` days, but not longer than that of the
    authority."""
    key = new_key()
    builder = _builder(
        subject, authority.certificate.subject, key, now, days, authority.certificate
    )
    names = [*map(_host, hosts), *map(x509.UniformResourceIdentifier, uris)]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
        critical=False,
    )
    return Issued(key, builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
    authority: x509.Certificate | None = None,
) -> x509.CertificateBuilder:
    end = now + days * DAY
    if authority is not None:
        end = min(end, authority.not_valid_after_utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
