"""AlterUserScramCredentials: an administrator sets and removes SCRAM credentials (KIP-554).

An error of one user fails none of the others. All records are one atomic batch. A user may appear
once for each mechanism. Kafka refuses a user that a request names twice, even with two mechanisms,
although its documentation gives such an example.

The first credential of a cluster is stored together with SCRAM_SECRET, unless it is set already.
Brokers derive the salts of unknown users from this secret (`quorum/sasl/unknown_users.py`).
"""

from __future__ import annotations

from collections import Counter

from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.quorum.controller.state.context import CLUSTER_DEFAULT, NO_CONFIGS, Context
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, DecisionSteps
from quorate.quorum.controller.state.result import (
    RequestRefused,
    Result,
    TooManyRecords,
    check_room,
)
from quorate.quorum.metadata.image import BROKER_RESOURCE, ScramKey
from quorate.quorum.metadata.records import ConfigRecord, MetadataRecord
from quorate.quorum.metadata.scram_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from quorate.quorum.sasl.scram_mechanisms import (
    BY_NUMBER,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    keys_of,
)
from quorate.quorum.seams import Random

MAX_CREDENTIALS = 10_000
"""Maximum number of credentials. Kafka has no bound. Every node holds all of them in memory."""
SECRET_BITS = 256

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    context: Context, request: AlterUserScramCredentialsRequest
) -> DecisionSteps:
    """Set and remove the credentials of one or more users, in steps.

    If one change of a user fails, no credential of that user changes. A request that would write
    more than MAX_RECORDS_PER_USER_OP records fails as a whole with POLICY_VIOLATION."""
    changes: dict[str, list[Change]] = {}
    asked: list[Change] = [*request.deletions, *request.upsertions]
    for each in asked:
        changes.setdefault(each.name, []).append(each)
    records: list[MetadataRecord] = []
    results: list[AlterUserScramCredentialsResult] = []
    keys = set(context.image.scram_credentials)
    """The keys of the credentials after the changes so far."""
    try:
        for number, (name, of_user) in enumerate(changes.items(), 1):
            if not number % STEP_RECORDS:  # also if all users so far were refused
                yield None
            check_room(len(records) + len(of_user))
            try:
                check(of_user, keys)
            except RequestRefused as error:
                results.append(result_of(name, error))
                continue
            made = [record_of(each) for each in of_user]
            apply(of_user, keys)
            records += made
            results.append(result_of(name, None))
    except TooManyRecords as error:
        results = [result_of(name, error) for name in changes]
        return Result(response=AlterUserScramCredentialsResponse(results=tuple(results)))
    response = AlterUserScramCredentialsResponse(results=tuple(results))
    return Result([*secret_records(context, records), *records], response)


def check(changes: list[Change], keys: set[ScramKey]) -> None:
    """Raise RequestRefused if one of the changes of a user is not allowed. `keys` are those of the
    credentials that exist."""
    times = Counter(each.mechanism for each in changes)
    for each in changes:
        if times[each.mechanism] > 1:
            raise RequestRefused(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        if not each.name:
            raise unacceptable("Username must not be empty")
        if each.mechanism not in BY_NUMBER:
            raise RequestRefused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if isinstance(each, ScramCredentialUpsertion):
            check_upsertion(each)
        elif (each.name, each.mechanism) not in keys:
            raise RequestRefused(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
    new = sum(
        isinstance(each, ScramCredentialUpsertion) and (each.name, each.mechanism) not in keys
        for each in changes
    )
    if new and len(keys) + new > MAX_CREDENTIALS:
        raise RequestRefused(
            ErrorCode.POLICY_VIOLATION,
            f"At most {MAX_CREDENTIALS} SCRAM credentials may exist. Remove others first.",
        )


def check_upsertion(each: ScramCredentialUpsertion) -> None:
    """Raise RequestRefused if the credential is not acceptable.

    Kafka stores an empty salt, with which no client can authenticate. It is refused here."""
    if each.iterations < MIN_ITERATIONS:
        raise unacceptable("Too few iterations")
    if each.iterations > MAX_ITERATIONS:
        raise unacceptable("Too many iterations")
    if not each.salt or not each.salted_password:
        raise unacceptable("The salt and the salted password must not be empty")


def apply(changes: list[Change], keys: set[ScramKey]) -> None:
    """Change `keys` as the changes of one user do."""
    for each in changes:
        if isinstance(each, ScramCredentialUpsertion):
            keys.add((each.name, each.mechanism))
        else:
            keys.discard((each.name, each.mechanism))


def record_of(change: Change) -> MetadataRecord:
    """Return the record of an allowed change. Only the keys made of the salted password are
    stored."""
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    keys = keys_of(BY_NUMBER[change.mechanism], bytes(change.salted_password))
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=change.iterations,
    )


def secret_records(context: Context, records: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return the record of a new SCRAM_SECRET if `records` are the first ones that need it."""
    if not records or SCRAM_SECRET in context.image.configs.get(CLUSTER_DEFAULT, NO_CONFIGS):
        return []
    return [secret_record(context.random)]


def secret_record(random: Random) -> ConfigRecord:
    """Return the record that sets SCRAM_SECRET to a new random value."""
    return ConfigRecord(
        resource_type=BROKER_RESOURCE,
        resource_name="",
        name=SCRAM_SECRET,
        value=f"{random.getrandbits(SECRET_BITS):0{SECRET_BITS // 4}x}",
    )


def unacceptable(message: str) -> RequestRefused:
    """Return the error UNACCEPTABLE_CREDENTIAL with a message."""
    return RequestRefused(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)


def result_of(
    name: str, error: RequestRefused | TooManyRecords | None
) -> AlterUserScramCredentialsResult:
    """Return the outcome for one user."""
    return AlterUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.NONE if error is None else error.error,
        error_message=None if error is None else error.message,
    )
