"""The contents of Kafka's `quorum-state` and of its checksummed copy, and the choice between them.

Kafka's file has no checksum and no place for the voters' directory ids. The copy has both. A node
that started with a wrong vote could vote twice in an epoch. A node whose last vote is unknown
therefore refuses to start (R1, R2 in tests/scenarios).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from crc32c import crc32c

from quorate.quorum.ids import NO_NODE, ZERO_UUID, ReplicaKey, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.files.checkpoints import MAX_STATE_FILE_BYTES, UNREADABLE, read_small
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.node_message_bounds import INT32_MAX
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import ElectionFileError
from quorate.quorum.seams import Disk

T = TypeVar("T")
KAFKA_NAME = "quorum-state"
COPY_NAME = "quorate-quorum-state"
COPY_VERSION = 1


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that cannot be read, with the reason."""

    reason: str


SavedElection = Election | Damaged | None
"""The contents of one of the two files. None means that there is no such file."""


def encode_v0(election: Election, voter_ids: Sequence[int]) -> bytes:
    """Return Kafka's file for kraft.version 0. It does not hold the directory id of the vote.
    `voter_ids` are the configured voters."""
    return _json(
        clusterId="",
        leaderId=election.leader_id,
        leaderEpoch=election.epoch,
        votedId=NO_NODE if election.voted is None else election.voted.id,
        appliedOffset=0,
        currentVoters=[{"voterId": voter_id} for voter_id in voter_ids],
        data_version=0,
    )


def encode_v1(election: Election) -> bytes:
    """Return Kafka's file for kraft.version 1 and later."""
    return _json(**_fields(election), data_version=1)


def decode_kafka(content: bytes) -> SavedElection:
    """Return the election in Kafka's file, or the damage."""

    def parse(state: Any) -> Election:
        version = state["data_version"]
        if version not in (0, 1):
            raise ValueError(f"data_version {version} is neither 0 nor 1")
        return _election(state)

    return _checked(content, parse)


def encode_copy(election: Election) -> bytes:
    """Return the copy: one line of JSON, and one with its CRC-32C."""
    body = _json(
        **_fields(election),
        voters=[
            {"voterId": key.id, "voterDirectoryId": uuid_to_text(key.directory_id)}
            for key in election.pinned
        ],
        data_version=COPY_VERSION,
    )
    return b"%b\n%08x\n" % (body, crc32c(body))


def decode_copy(content: bytes) -> SavedElection:
    """Return the election in the copy, or the damage."""
    body, newline, checksum = content.partition(b"\n")
    if not newline or checksum != b"%08x\n" % crc32c(body):
        return Damaged("its checksum does not match")

    def parse(state: Any) -> Election:
        if state["data_version"] != COPY_VERSION:
            raise ValueError(f"data_version {state['data_version']} is not {COPY_VERSION}")
        pinned = tuple(
            ReplicaKey(_int(voter["voterId"]), uuid_from_text(voter["voterDirectoryId"]))
            for voter in state["voters"]
        )
        return replace(_election(state), pinned=pinned)

    return _checked(body, parse)


def read_saved_election(
    disk: Disk, path: str, decode: Callable[[bytes], SavedElection]
) -> tuple[bytes, SavedElection]:
    """Return the bytes of one of the two files and their meaning. The bytes are empty if the file
    is missing or too large. Raise OSError if the disk fails."""
    try:
        content = read_small(disk, path, max_bytes=MAX_STATE_FILE_BYTES)
    except CorruptCheckpoint as error:
        return b"", Damaged(str(error))
    return (b"", None) if content is None else (content, decode(content))


def choose_election(
    kafka: SavedElection,
    copy: SavedElection,
    where: str,
    *,
    has_records: bool = False,
    any_epoch: bool = False,
) -> Election:
    """Return the last election that this node saved, from the contents of the two files.

    | quorum-state | copy | result |
    |---|---|---|
    | valid | valid, a higher epoch | the copy |
    | valid, a higher epoch | valid | its vote, or its leader as the vote; no leader |
    | valid | valid, same epoch | the vote of either, and the leader of the copy |
    | valid | valid, same epoch, but another vote or leader | ElectionFileError |
    | valid | missing or damaged | quorum-state |
    | missing or damaged | valid | the copy |
    | missing | missing, and the log is empty | this node never voted |
    | anything else | | ElectionFileError |

    If both files are valid, the voters (`Election.pinned`) come from the copy. `quorum-state` has a
    higher epoch if Kafka ran here, if a power cut kept only its rename, or if its epoch is damaged.
    A node that believed the old leader in a damaged epoch would refuse the true leader of that
    epoch, so it believes no leader. It also believes no leader that only `quorum-state` has in the
    epoch of the copy: one flipped bit makes `-1` another number. This leader counts as the vote if
    there is no other.

    A node saves an epoch before it appends records of that epoch (R21 in tests/scenarios). A log
    with records therefore proves that there was a file. Raise ElectionFileError also if the epoch
    exceeds INT32_MAX. The tool that repairs such an epoch sets `any_epoch` to avoid this error.
    Error messages name the directory `where`.
    """
    election = _believed(kafka, copy, where, has_records=has_records)
    if election.epoch > INT32_MAX and not any_epoch:
        raise ElectionFileError(
            f"{where}: {KAFKA_NAME} or {COPY_NAME} holds epoch {election.epoch}, but the last "
            f"epoch that a record can have is {INT32_MAX}. A false vote request caused it. Stop "
            "all controllers and run `quorate storage repair-epoch -c FILE` on each of them"
        )
    return election


def _believed(
    kafka: SavedElection, copy: SavedElection, where: str, *, has_records: bool
) -> Election:
    match kafka, copy:
        case None, None if not has_records:
            return Election()
        case Election(), Election():
            return _reconcile(kafka, copy, where)
        case Election(), _:
            return kafka
        case _, Election():
            return copy
    reasons = "; ".join(
        f"{name}: {'missing' if found is None else found.reason}"
        for name, found in (("quorum-state", kafka), ("copy", copy))
        if not isinstance(found, Election)
    )
    raise ElectionFileError(
        f"{where}: the vote of this node is lost ({reasons}). It could vote twice, so it does not "
        "start. Move this metadata directory out of the data directory, keep the rest, and start "
        "the node: it catches up with the leader before it votes. Or restore either file from a "
        "backup of this very node taken after its last start"
    )


def _reconcile(kafka: Election, copy: Election, where: str) -> Election:
    if kafka.epoch < copy.epoch:  # a crash between the two renames
        return copy
    if kafka.epoch > copy.epoch:
        voted = kafka.voted
        if voted is None and kafka.leader_id != NO_NODE:
            voted = ReplicaKey(kafka.leader_id, ZERO_UUID)  # no other one gets a vote
        return Election(kafka.epoch, voted, NO_NODE, copy.pinned)
    voted = _agreed(_vote(kafka, copy), copy.voted, None, "vote", where)
    leader_id = _agreed(kafka.leader_id, copy.leader_id, NO_NODE, "leader", where)
    if leader_id != copy.leader_id:  # no checksum vouches for it
        voted = voted or ReplicaKey(leader_id, ZERO_UUID)
    return Election(copy.epoch, voted, copy.leader_id, copy.pinned)


def _vote(kafka: Election, copy: Election) -> ReplicaKey | None:
    """Return Kafka's vote. Add the copy's directory id if Kafka's file (version 0) does not hold
    one."""
    voted = kafka.voted
    if voted is not None and copy.voted is not None and voted.directory_id == ZERO_UUID:
        return replace(voted, directory_id=copy.voted.directory_id)
    return voted


def _agreed(one: T, other: T, unknown: T, what: str, where: str) -> T:
    if unknown not in (one, other) and one != other:
        raise ElectionFileError(
            f"{where}: quorum-state and its copy are both intact and name another {what} in the "
            f"same epoch: {one} and {other}. One of them is from another node or was edited. "
            "Restore the files of this node, or move this metadata directory out of the data "
            "directory. The node then catches up with the leader before it votes"
        )
    return other if one == unknown else one


def _fields(election: Election) -> dict[str, object]:
    voted = election.voted or ReplicaKey(NO_NODE, ZERO_UUID)
    return {
        "leaderId": election.leader_id,
        "leaderEpoch": election.epoch,
        "votedId": voted.id,
        "votedDirectoryId": uuid_to_text(voted.directory_id),
    }


def _json(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii")


def _checked(content: bytes, parse: Callable[[Any], Election]) -> SavedElection:
    try:
        return parse(json.loads(content))
    except UNREADABLE as error:
        return Damaged(f"{type(error).__name__}: {error}")


def _election(state: Any) -> Election:
    voted_id, leader_id = _int(state["votedId"]), _int(state["leaderId"])
    if max(voted_id, leader_id) > INT32_MAX:
        raise ValueError(f"votedId {voted_id} or leaderId {leader_id} is no node's id")
    directory_id = state.get("votedDirectoryId")
    voted = ReplicaKey(voted_id, _directory(directory_id)) if voted_id >= 0 else None
    epoch = _int(state["leaderEpoch"])
    if epoch < 0:
        raise ValueError(f"leaderEpoch {epoch} is negative")
    return Election(epoch, voted, leader_id)


def _directory(text: object) -> Uuid:
    return ZERO_UUID if text is None else uuid_from_text(str(text))


def _int(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a number")
    return value
