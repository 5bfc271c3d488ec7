"""`quorate configs` for users: their SCRAM credentials (KIP-554).

The command salts the password, so that it never reaches the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import SystemRandom

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.errors import Refused
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.protocol.schemas import user_scram_credentials as schemas
from quorate.quorum.sasl.random_text import random_text
from quorate.quorum.sasl.scram_mechanisms import (
    BY_NAME,
    BY_NUMBER,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
)

RESOURCE_NOT_FOUND = 91
CREDENTIAL = re.compile(
    r"(?:iterations=(?P<iterations>-?\d+),)?password=(?P<password>.*)", re.DOTALL
)


def is_credential(key: str) -> bool:
    """Return True if the config of a user is a SCRAM credential, and not a quota."""
    return key in BY_NAME


def describe_credentials(admin: Admin, user: str | None) -> dict[str, dict[str, int]]:
    """Return the iterations by user and mechanism, of one user or of all. A user without
    credentials is left out. Raise Refused on an error of the cluster."""
    users = None if user is None else (schemas.UserName(name=user),)
    answer = admin.ask(
        schemas.DescribeUserScramCredentialsRequest(users=users),
        schemas.DescribeUserScramCredentialsResponse,
    )
    check(answer.error_code, answer.error_message, "the SCRAM credentials")
    found = {}
    for each in answer.results:
        if each.error_code == RESOURCE_NOT_FOUND:
            continue
        check(each.error_code, each.error_message, f"the SCRAM credentials of {each.user}")
        found[each.user] = {
            BY_NUMBER[info.mechanism].name: info.iterations for info in each.credential_infos
        }
    return found


def print_credentials(found: Mapping[str, Mapping[str, int]]) -> None:
    """Print one line for each user, as kafka-configs does."""
    for user, credentials in found.items():
        texts = ", ".join(f"{name}=iterations={count}" for name, count in credentials.items())
        echo(f"SCRAM credential configs for user-principal '{user}' are {texts}")


def alter_credentials(
    admin: Admin, user: str, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and remove credentials of one user. Raise UsageError or Refused if a value is not valid,
    and Refused if the cluster refuses the change."""
    request = schemas.AlterUserScramCredentialsRequest(
        deletions=tuple(
            schemas.ScramCredentialDeletion(name=user, mechanism=BY_NAME[each].number)
            for each in deleted
        ),
        upsertions=tuple(upsertion(user, key, text) for key, text in added.items()),
    )
    answer = admin.change(
        request,
        schemas.AlterUserScramCredentialsResponse,
        lambda answer: [each.error_code for each in answer.results],
        repeatable=not deleted,
    )
    for each in answer.results:
        check(each.error_code, each.error_message, f"user {each.user}")


def upsertion(user: str, name: str, text: str) -> schemas.ScramCredentialUpsertion:
    """Return a credential from Kafka's text, such as `iterations=8192,password=secret`. Blocks for
    some ms. Raise UsageError or Refused, without the password."""
    mechanism = BY_NAME[name]
    match = CREDENTIAL.fullmatch(text.removeprefix("[").removesuffix("]"))
    if match is None or not match["password"]:
        raise click.UsageError(
            f"The value of {name} must have the form [iterations=8192,password=PASSWORD], where "
            "the iterations may be missing"
        )
    iterations = int(match["iterations"] or MIN_ITERATIONS)
    if iterations < MIN_ITERATIONS:
        raise Refused(
            f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {name}"
        )
    if iterations > MAX_ITERATIONS:
        raise Refused(f"Iterations {iterations} is more than the maximum {MAX_ITERATIONS}")
    salt = random_text(SystemRandom()).encode()
    return schemas.ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.number,
        iterations=iterations,
        salt=salt,
        salted_password=mechanism.salted_password(match["password"], salt, iterations),
    )
