"""The texts of subjects, compared with those that Java 17 wrote for the same encoded names."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from quorate.quorum.rpc.tls.distinguished_name import distinguished_name

ROWS = [
    line.split("\t", 1)
    for line in (Path(__file__).parent / "java_names.tsv").read_text().splitlines()
]
"""The encoded names in hexadecimal, with X500Principal.getName() of Java."""


def decoded(encoded: bytes) -> x509.Name:
    """Return the name that `encoded` holds. `cryptography` decodes names in requests only."""
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(ec.generate_private_key(ec.SECP256R1()), SHA256())
    )
    body = request.tbs_certrequest_bytes
    start = body.index(b"\x02\x01\x00") + 3  # the version; an empty name follows
    assert body[start : start + 2] == b"\x30\x00"
    inner = body[body.index(b"\x02\x01\x00") : start] + encoded + body[start + 2 :]
    signature = request.public_bytes(Encoding.DER)
    tail = signature[signature.index(body) + len(body) :]
    return x509.load_der_x509_csr(_sequence(_sequence(inner) + tail)).subject


def _sequence(content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((0x30, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((0x30, 0x80 | len(digits))) + digits + content


@pytest.mark.parametrize(("encoded", "text"), ROWS, ids=range(len(ROWS)))
def test_the_text_is_javas(encoded: str, text: str) -> None:
    assert distinguished_name(decoded(bytes.fromhex(encoded))) == text
