"""The users of `quorate storage format --add-scram`."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from quorate.cli.client.errors import Refused
from quorate.config.key import is_encodable
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from quorate.quorum.sasl.random_text import random_text
from quorate.quorum.sasl.scram_mechanisms import (
    BY_NAME,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    keys_of,
)

GIVEN = re.compile(r"\s*([A-Za-z0-9-]+)\s*=\s*\[(.*)\]\s*", re.DOTALL)
FIELD = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"([^"]*)"|([^,"]*))\s*(?:,|$)')
FIELDS = ("name", "password", "password-file", "iterations", "salt", "saltedpassword")
EXAMPLE = "such as SCRAM-SHA-256=[name=admin,password-file=FILE]"


def scram_records(texts: Sequence[str]) -> list[UserScramCredentialRecord]:
    """Return the records of the credentials. Blocks for some ms for each. Raise Refused if a text
    is not valid or two are for the same user and mechanism. No error quotes a password."""
    records = [scram_record(text) for text in texts]
    keys = {(each.name, each.mechanism) for each in records}
    if len(keys) != len(records):
        raise Refused("--add-scram: a user is given twice for the same mechanism")
    return records


def scram_record(text: str) -> UserScramCredentialRecord:
    """Return the record of one credential. Raise Refused if the text is not valid."""
    if not is_encodable(text):
        raise Refused("--add-scram: the value must be UTF-8 text")
    match = GIVEN.fullmatch(text)
    mechanism = BY_NAME.get(match[1]) if match else None
    if match is None or mechanism is None:
        raise Refused(f"--add-scram: the value must begin with {' or '.join(BY_NAME)}, {EXAMPLE}")
    fields = fields_of(match[2])
    name = fields.get("name")
    if not name:
        raise Refused(f"--add-scram: the value must have a name, {EXAMPLE}")
    iterations = iterations_of(name, fields.get("iterations", str(MIN_ITERATIONS)))
    salt = from_base64(name, "salt", fields["salt"]) if "salt" in fields else None
    if salt is None:
        salt = random_text(SystemRandom()).encode()
    salted = salted_password(name, mechanism, fields, salt, iterations)
    keys = keys_of(mechanism, salted)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism.number,
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=iterations,
    )


def fields_of(text: str) -> dict[str, str]:
    """Return the fields between the brackets. Raise Refused for an unknown one."""
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = FIELD.match(text, position)
        if match is None or match[1] not in FIELDS or match[1] in fields:
            raise Refused(
                f"--add-scram: the fields must be some of {', '.join(FIELDS)}, each once, {EXAMPLE}"
            )
        fields[match[1]] = match[3].strip() if match[2] is None else match[2]
        position = match.end()
    return fields


def iterations_of(name: str, text: str) -> int:
    """Return the iterations. Raise Refused if they are not allowed."""
    if not text.isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise Refused(
            f"--add-scram: the iterations of {name!r} must be between {MIN_ITERATIONS} and "
            f"{MAX_ITERATIONS}"
        )
    return int(text)


def salted_password(
    name: str, mechanism: ScramMechanism, fields: dict[str, str], salt: bytes, iterations: int
) -> bytes:
    """Return the salted password from the one field that gives it. Raise Refused if none or several
    do."""
    given = [each for each in ("password", "password-file", "saltedpassword") if fields.get(each)]
    if len(given) != 1:
        raise Refused(
            f"--add-scram: {name!r} must have one of password, password-file and saltedpassword"
        )
    if given == ["saltedpassword"]:
        if "salt" not in fields:
            raise Refused(f"--add-scram: the saltedpassword of {name!r} needs its salt")
        return from_base64(name, "saltedpassword", fields["saltedpassword"])
    password = fields.get("password") or ""
    if given == ["password-file"]:
        try:
            password = Path(fields["password-file"]).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"--add-scram: the password file of {name!r}: {error}") from None
        if not password:
            raise Refused(f"--add-scram: the password file of {name!r} is empty")
    return mechanism.salted_password(password, salt, iterations)


def from_base64(name: str, field: str, text: str) -> bytes:
    """Return the bytes of a field. Raise Refused if it is not in base 64 or empty."""
    try:
        data = b64decode(text, validate=True)
    except BadBase64:
        data = b""
    if not data:
        raise Refused(f"--add-scram: the {field} of {name!r} must be in base 64")
    return data
