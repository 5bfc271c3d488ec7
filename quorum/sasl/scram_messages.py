"""The messages of SCRAM as Kafka's clients and servers write them (RFC 5802, section 7).

Names are ASCII, with `=2C` for a comma and `=3D` for an equal sign. Channel binding does not exist.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

MAX_BYTES = 16 * 1024
"""Maximum size of a message. No user has a name of more than 1,024 bytes. Longer messages would
only cost time and memory before the authentication."""
SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
VALUE = r"[\x01-\x2b\x2d-\x7f]+"
BASE64 = r"[A-Za-z0-9+/]+={0,2}"
EXTENSIONS = rf"(?:,[A-Za-z]+={VALUE})*"
CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={VALUE},)?n=(?P<name>{SASL_NAME}),r=(?P<nonce>{PRINTABLE})"
    rf"(?P<extensions>{EXTENSIONS}))"
)
CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{BASE64}),r=(?P<nonce>{PRINTABLE}){EXTENSIONS})"
    rf",p=(?P<proof>{BASE64})"
)


class Malformed(Exception):
    """The bytes are not the expected message."""


class ClientFirst(NamedTuple):
    """The first message of a client. `bare` is the part that both ends sign, and `header` the part
    before it."""

    header: str
    bare: str
    user: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]


class ClientFinal(NamedTuple):
    """The last message of a client. `binding` must be the header of the first one."""

    without_proof: str
    binding: bytes
    nonce: str
    proof: bytes


def parse_client_first(token: bytes) -> ClientFirst:
    """Return the message. Raise Malformed, also if the client asks for channel binding."""
    match = CLIENT_FIRST.fullmatch(text_of(token))
    if match is None:
        raise Malformed("the first message of the client is malformed")
    pairs = (each.partition("=") for each in match["extensions"].split(",")[1:])
    return ClientFirst(
        header=match["header"],
        bare=match["bare"],
        user=user_of(match["name"]),
        authorization_id=user_of(match["authorization_id"] or ""),
        nonce=match["nonce"],
        extensions={name: value for name, _, value in pairs},
    )


def parse_client_final(token: bytes) -> ClientFinal:
    """Return the message. Raise Malformed."""
    match = CLIENT_FINAL.fullmatch(text_of(token))
    if match is None:
        raise Malformed("the last message of the client is malformed")
    return ClientFinal(
        without_proof=match["without_proof"],
        binding=decoded(match["binding"]),
        nonce=match["nonce"],
        proof=decoded(match["proof"]),
    )


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """Return the first message of a server."""
    return f"r={nonce},s={encoded(salt)},i={iterations}"


def server_final(signature: bytes) -> str:
    """Return the last message of a server."""
    return f"v={encoded(signature)}"


def user_of(sasl_name: str) -> str:
    """Return the user of an escaped name."""
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def sasl_name_of(user: str) -> str:
    """Return the escaped name of a user."""
    return user.replace("=", "=3D").replace(",", "=2C")


def text_of(token: bytes) -> str:
    """Return the token as text. Raise Malformed if it is too large or not UTF-8."""
    if len(token) > MAX_BYTES:
        raise Malformed(f"a message of the client has more than {MAX_BYTES} bytes")
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise Malformed("a message of the client is not UTF-8") from None


def encoded(data: bytes) -> str:
    """Return the data in base 64."""
    return base64.b64encode(data).decode()


def decoded(text: str) -> bytes:
    """Return the bytes of a text in base 64. Raise Malformed."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Malformed("a value of a message is not in base 64") from None
