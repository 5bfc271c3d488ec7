"""Removes the secrets from metadata records before they are shown.

The metadata log holds the keys of SCRAM credentials, and the values of password configs, in clear.
Everything that shows records outside of the log shows what `redacted` returns: `/v1/changes`, the
tables and pages of a history, `quorate dump-log` and `quorate metadata-shell`. The last two show
the secrets with `--show-secrets`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from quorate.config.sensitive import HIDDEN, is_secret
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord

R = TypeVar("R")


def redacted(record: R) -> R:
    """Return the record without its secrets. A record without secrets is returned as it is.

    The salt and the keys of a credential become empty, and the value of a secret config becomes
    HIDDEN."""
    rule: Callable[[R], R] | None = RULES.get(type(record))
    return record if rule is None else rule(record)


def _credential(record: UserScramCredentialRecord) -> UserScramCredentialRecord:
    return replace(record, salt=b"", stored_key=b"", server_key=b"")


def _config(record: ConfigRecord) -> ConfigRecord:
    if record.value is None or not is_secret(record.resource_type, record.name):
        return record
    return replace(record, value=HIDDEN)


RULES: dict[type, Callable[[Any], Any]] = {
    UserScramCredentialRecord: _credential,
    ConfigRecord: _config,
}
"""The rule of each record class that may hold a secret."""
