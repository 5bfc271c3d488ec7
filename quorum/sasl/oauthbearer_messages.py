"""The messages of OAUTHBEARER as Kafka's clients and servers write them (RFC 7628, KIP-255).

The client's first message is `n,`, an optional `a=` with the authorization id, a comma, and pairs
`name=value`. \\x01 separates the pairs, and two of them end the message. The pair `auth` holds the
token. The others are extensions, which have no effect.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

MAX_TOKEN_CHARS = 32 << 10
"""The maximum length of a token. Kafka has no bound but that of the frame."""
END = b"\x01"
"""The client's answer to a refusal."""
FIRST = re.compile(
    r"n,(?:a=((?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    r"((?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
AUTH = re.compile(r"(\w+) +([-_.a-zA-Z0-9]+)", re.ASCII)


class Malformed(Exception):
    """The message of a client does not have the form of OAUTHBEARER."""


class ClientFirst(NamedTuple):
    """The first message of a client. The authorization id is empty if there is none."""

    token: str
    authorization_id: str


def client_first(token: str) -> bytes:
    """Return the first message of a client that shows `token`."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def parse_client_first(message: bytes) -> ClientFirst:
    """Return the token and the authorization id. Raise Malformed, without the token in its text."""
    if len(message) > 2 * MAX_TOKEN_CHARS:
        raise Malformed(f"the message has {len(message)} bytes")
    match = FIRST.fullmatch(message.decode("utf-8", "replace"))
    if match is None:
        raise Malformed("the first message is malformed")
    pairs = dict(each.split("=", 1) for each in match[2].split("\x01") if each)
    auth = AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth[1].lower() != "bearer":
        raise Malformed("the first message has no bearer token")
    if len(auth[2]) > MAX_TOKEN_CHARS:
        raise Malformed(f"the token has {len(auth[2])} characters, at most {MAX_TOKEN_CHARS}")
    return ClientFirst(auth[2], match[1] or "")


def refusal(status: str) -> bytes:
    """Return the answer to a token that is not accepted."""
    return json.dumps({"status": status}, separators=(",", ":")).encode()
