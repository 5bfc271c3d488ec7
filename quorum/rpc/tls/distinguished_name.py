"""The text of a certificate's subject, character by character as Java writes it (RFC 2253).

Users of Kafka have such texts in super.users and in ACLs. `cryptography` writes RFC 4514, which
differs: Java escapes `#` and `=` anywhere in a value, and writes the attributes that RFC 2253 does
not name as the hexadecimal digits of their encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Name, NameAttribute

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attribute types that RFC 2253 names."""
ESCAPED = ',=+<>#;"\\'


def distinguished_name(name: Name) -> str:
    """Return the text of `name`, its last attribute first, as in `CN=alice,O=Acme,C=DE`."""
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(name.rdns))


def _attribute(attribute: NameAttribute[str | bytes]) -> str:
    oid = attribute.oid.dotted_string
    keyword = KEYWORDS.get(oid)
    if keyword is None or not isinstance(attribute.value, str):
        return f"{keyword or oid}=#{_encoded_value(attribute).hex()}"
    return f"{keyword}={_escaped(attribute.value)}"


def _escaped(value: str) -> str:
    """Return `value` with a backslash before special characters and before blanks at its ends."""
    body = value.strip(" ")
    start = len(value) - len(value.lstrip(" "))
    end = len(value) - start - len(body)
    text = "".join(f"\\{each}" if each in ESCAPED else each for each in body)
    return "\\ " * start + text.replace("\0", "\\00") + "\\ " * end


def _encoded_value(attribute: NameAttribute[str | bytes]) -> bytes:
    """Return the DER encoding of an attribute's value.

    `cryptography` encodes whole names only. The value follows the headers of a sequence, a set and
    a sequence, and the object identifier."""
    from cryptography import x509

    encoded = x509.Name([attribute]).public_bytes()
    position = 0
    for _ in range(3):
        position, _ = _contents(encoded, position)
    start, size = _contents(encoded, position)
    return encoded[start + size :]


def _contents(encoded: bytes, position: int) -> tuple[int, int]:
    """Return where the contents of the element at `position` begin, and their size."""
    size = encoded[position + 1]
    if size < 0x80:
        return position + 2, size
    count = size & 0x7F
    start = position + 2 + count
    return start, int.from_bytes(encoded[position + 2 : start], "big")
