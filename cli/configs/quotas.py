"""`quorate configs` for users, clients and ips: quotas (KIP-546), and the credentials of users."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.errors import Refused
from quorate.cli.configs.credentials import (
    alter_credentials,
    describe_credentials,
    is_credential,
    print_credentials,
)
from quorate.cli.terminal.safe_text import echo
from quorate.config.java_numbers import double_text
from quorate.quorum.protocol.schemas import client_quotas as schemas

EXACT, DEFAULT, ANY = 0, 1, 2
BROKERS = 1
"""The endpoint type of brokers (KIP-919)."""
USER_AND_CLIENT_KEYS = frozenset(
    {
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
    }
)
IP_KEYS = frozenset({"connection_creation_rate"})


@dataclass(frozen=True, slots=True)
class QuotaType:
    """An entity type with quotas: its name in requests, its name in texts, and its quotas."""

    wire_name: str
    text: str
    keys: frozenset[str]


QUOTA_TYPES = {
    "users": QuotaType("user", "user-principal", USER_AND_CLIENT_KEYS),
    "clients": QuotaType("client-id", "client-id", USER_AND_CLIENT_KEYS),
    "ips": QuotaType("ip", "ip", IP_KEYS),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an entity. The name "" means the default of the type, and None every name."""

    kind: str
    name: str | None

    @property
    def type(self) -> QuotaType:
        """Return the type of the part."""
        return QUOTA_TYPES[self.kind]


def checked_parts(types: Sequence[str], names: Sequence[str]) -> list[Part]:
    """Return the parts that the options name: the first name belongs to the first type.

    Raise UsageError for types that cannot be combined, a repeated type, or too many names."""
    if len(set(types)) < len(types) or (len(types) > 1 and set(types) != {"users", "clients"}):
        raise click.UsageError("Only users and clients can be combined, each of them once")
    if len(names) > len(types):
        raise click.UsageError("There are more entity names than entity types")
    padded = [*names, *[None] * (len(types) - len(names))]
    return [Part(kind, name) for kind, name in zip(types, padded, strict=True)]


def described(admin: Admin, parts: Sequence[Part]) -> tuple[schemas.EntryData, ...]:
    """Return the entities that have exactly these parts, with their quotas. Raise Refused on an
    error of the cluster."""
    request = schemas.DescribeClientQuotasRequest(
        components=tuple(
            schemas.ComponentData(
                entity_type=part.type.wire_name,
                match_type=ANY if part.name is None else EXACT if part.name else DEFAULT,
                match=part.name or None,
            )
            for part in parts
        ),
        strict=True,
    )
    answer = admin.ask(request, schemas.DescribeClientQuotasResponse)
    check(answer.error_code, answer.error_message, "the quotas")
    return answer.entries or ()


def describe_quotas(admin: Admin, parts: Sequence[Part], output: str) -> None:
    """Print the quotas of the matching entities, one line for each, as kafka-configs does."""
    entries = described(admin, parts)
    credentials = described_credentials(admin, parts)
    if output == "json":
        found: list[dict[str, object]] = [
            {
                "entity": {part.entity_type: part.entity_name for part in each.entity},
                "quotas": {value.key: value.value for value in each.values},
            }
            for each in entries
        ]
        found += [
            {"entity": {"user": user}, "scram_credentials": each}
            for user, each in credentials.items()
        ]
        echo(json.dumps(found, indent=2))
        return
    for each in entries:
        quotas = ", ".join(f"{value.key}={double_text(value.value)}" for value in each.values)
        echo(f"Quota configs for {', '.join(part_texts(each))} are {quotas}")
    print_credentials(credentials)


def described_credentials(admin: Admin, parts: Sequence[Part]) -> dict[str, dict[str, int]]:
    """Return the SCRAM credentials of the user, or of all users, if `parts` name nothing else. Only
    brokers describe them."""
    (first, *others) = parts
    if others or first.kind != "users" or first.name == "" or admin.endpoint_type != BROKERS:
        return {}
    return describe_credentials(admin, first.name)


def part_texts(entry: schemas.EntryData) -> Iterator[str]:
    """Yield the texts of the parts of an entity, the user first."""
    names = {part.entity_type: part.entity_name for part in entry.entity}
    for kind in QUOTA_TYPES.values():
        if kind.wire_name in names:
            name = names[kind.wire_name]
            yield f"the default {kind.text}" if name is None else f"{kind.text} '{name}'"


def alter_quotas(
    admin: Admin, parts: Sequence[Part], added: dict[str, str], deleted: Sequence[str]
) -> None:
    """Set and delete quotas of one entity in one request, and before it the SCRAM credentials of a
    user in another one.

    Raise UsageError if there is no change, if a part has no name, or if a value is not valid. Raise
    Refused if a config is unknown, or if a quota to delete is not set. Nothing is changed then.
    Raise Refused also if the cluster refuses a change."""
    if not added and not deleted:
        raise click.UsageError(
            "At least one of --add-config, --add-config-file, --delete-config must be specified "
            "with --alter"
        )
    if any(part.name is None for part in parts):
        raise click.UsageError(
            "An entity name or --entity-default must be specified with --alter of "
            + " and ".join(part.kind for part in parts)
        )
    (first, *others) = parts
    credentials: dict[str, str] = {}
    removed: list[str] = []
    if first.kind == "users" and first.name and not others:
        credentials = {key: text for key, text in added.items() if is_credential(key)}
        removed = [key for key in deleted if is_credential(key)]
        added = {key: text for key, text in added.items() if key not in credentials}
        deleted = [key for key in deleted if key not in removed]
    unknown = [key for key in (*added, *deleted) if key not in parts[0].type.keys]
    if unknown:
        kinds = " and ".join(part.kind for part in parts)
        known = ", ".join(sorted(parts[0].type.keys))
        raise Refused(f"Only {known} can be set for {kinds}, not {', '.join(unknown)}")
    values = {key: quota_value(key, text) for key, text in added.items()}
    if deleted:
        now = {value.key for entry in described(admin, parts) for value in entry.values}
        missing = [key for key in deleted if key not in now]
        if missing:
            raise Refused(f"Invalid config(s): {','.join(missing)}")
    if credentials or removed:
        alter_credentials(admin, first.name or "", credentials, removed)
    ops = [schemas.OpData(key=key, value=value, remove=False) for key, value in values.items()]
    ops += [schemas.OpData(key=key, value=0.0, remove=True) for key in deleted]
    if ops:
        send(admin, parts, ops)
    if first.name:
        echo(f"Completed updating config for {first.kind[:-1]} {first.name}.")
    else:
        echo(f"Completed updating default config for {first.kind} in the cluster.")


def quota_value(key: str, text: str) -> float:
    """Return the number of a quota. Raise UsageError if the text is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise click.UsageError(f"Cannot parse quota configuration value for {key}: {text}")
    return value


def send(admin: Admin, parts: Sequence[Part], ops: Sequence[schemas.OpData]) -> None:
    """Change the quotas of the entity. Raise Refused if the cluster refuses the change."""
    entry = schemas.AlterationData(
        entity=tuple(
            schemas.AlteredEntityData(
                entity_type=part.type.wire_name, entity_name=part.name or None
            )
            for part in parts
        ),
        ops=tuple(ops),
    )
    answer = admin.change(
        schemas.AlterClientQuotasRequest(entries=(entry,), validate_only=False),
        schemas.AlterClientQuotasResponse,
        lambda answer: [each.error_code for each in answer.entries],
        repeatable=True,
    )
    for each in answer.entries:
        check(each.error_code, each.error_message, "the quotas")
