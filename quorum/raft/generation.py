"""How often this node's quorum was rebuilt after it was lost for good, and who may follow it there.

`force-voters` rebuilds a quorum offline from what survived. Each time is one generation; nodes of
different generations refuse each other in their handshake, so the old majority cannot come back.
Each rebuild says from where on its log is a new one: the (last epoch, end offset) of the log that
it was made from.

Who meets a node of a later generation follows it there or stays apart:

| this node | follows |
|---|---|
| a broker whose log ends at or below where the rebuild began, in its epoch or an older one | yes:
  all it has is committed, so it has a prefix of the rebuilt log (Raft's leader completeness) |
| a broker with more | never: it has committed records that the rebuilt quorum lacks |
| a broker that has a link to its leader | not now: that quorum lives |
| a controller without records and without a vote | yes: it has nothing to contradict |
| any other controller | never: it could elect, or be counted, in the old quorum too |
| anybody whose own generations are not among the other's | never: two rebuilds of one cluster |

A node believes in a later generation only if it connected to one of the addresses that its
configuration or its log has of controllers. Any program can connect to a node and say Hello.

A quorum that lives, lives on: a node that does not follow says why and goes on with those that it
has, for a rebuild that was made by mistake must not take a living cluster down. But one that has no
leader does not come back: a controller that has met its successor grants no vote and never gets
beyond pre-vote, as long as it runs (`Raft.superseded`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from quorate.quorum.bounds import Epoch, Offset
from quorate.quorum.ids import EpochOffset, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.checkpoints import (
    MAX_EPOCH,
    MAX_OFFSET,
    MAX_STATE_FILE_BYTES,
    UNREADABLE,
    read_small,
    replace,
)
from quorate.quorum.log.errors import CorruptCheckpoint
from quorate.quorum.raft.errors import GenerationFileError
from quorate.quorum.seams import Disk

FILE_NAME = "quorate-quorum-generation"
VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """One rebuild: what ended there was kept, what came after it is gone."""

    id: Uuid
    epoch: Epoch
    offset: Offset

    @property
    def end(self) -> EpochOffset:
        return EpochOffset(self.epoch, self.offset)


Rebuilds = tuple[Rebuild, ...]
"""All of a quorum's, oldest first; their number is the generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuorumState:
    """What a node that meets a later generation is and has."""

    rebuilds: Rebuilds
    end: EpochOffset
    is_controller: bool
    voted: bool
    leader_id: int
    """Of the leader that this node has a link to, or NO_NODE."""
    directory: str


def why_not_follow(mine: LocalQuorumState, theirs: Rebuilds) -> str:
    """Why this node stays in its own generation; empty when it follows."""
    if not is_later(theirs, mine.rebuilds):
        return (
            "the two were rebuilt apart from each other: only one of them can be this cluster's "
            "quorum, format the nodes of the other anew"
        )
    if mine.is_controller and (mine.voted or mine.end.offset > 0):
        return (
            "this controller belongs to the quorum from before: format it anew and let it join "
            f"(where it is a broker too, remove {mine.directory} only)"
        )
    if mine.leader_id >= 0:
        return f"this node follows leader {mine.leader_id} of its own quorum, which lives"
    kept = theirs[len(mine.rebuilds)].end
    if mine.end.offset > kept.offset or mine.end.epoch > kept.epoch:
        return (
            f"this broker has committed metadata up to offset {mine.end.offset} of epoch "
            f"{mine.end.epoch}, the quorum was rebuilt from what ends at offset {kept.offset} of "
            f"epoch {kept.epoch} and lacks the rest. To have it back, stop everything, remove the "
            "metadata directory of every node of the rebuilt quorum, and with it what was done "
            "there since, and run force-voters again with this broker's directory too; to give it "
            f"up, stop this broker and remove {mine.directory}"
        )
    return ""


def is_later(theirs: Rebuilds, mine: Rebuilds) -> bool:
    """Was theirs rebuilt, perhaps more than once, from what had been mine?"""
    return len(theirs) > len(mine) and theirs[: len(mine)] == mine


class GenerationFile:
    """Beside quorum-state, checksummed. Calls block; `save` is durable when it returns."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self.path = f"{directory}/{FILE_NAME}"

    def load(self) -> Rebuilds:
        """Raises GenerationFileError."""
        try:
            content = read_small(self._disk, self.path, max_bytes=MAX_STATE_FILE_BYTES)
            if content is None:
                return ()
            return decode(content)
        except (*UNREADABLE, CorruptCheckpoint) as error:
            raise GenerationFileError(
                f"{self.path} is damaged ({error}): which generation of the quorum this node "
                "belongs to is not known. Copy the file from another node of this cluster that "
                "works, or format the disk anew"
            ) from error

    def save(self, rebuilds: Rebuilds) -> None:
        replace(self._disk, self.path, encode(rebuilds))


def encode(rebuilds: Rebuilds) -> bytes:
    """JSON, and in a line of its own its CRC-32C."""
    state = {
        "rebuilds": [
            {"id": uuid_to_text(each.id), "epoch": each.epoch, "offset": each.offset}
            for each in rebuilds
        ],
        "version": VERSION,
    }
    body = json.dumps(state, separators=(",", ":")).encode()
    return b"%b\n%08x\n" % (body, crc32c(body))


def decode(content: bytes) -> Rebuilds:
    body, newline, checksum = content.partition(b"\n")
    if not newline or checksum != b"%08x\n" % crc32c(body):
        raise ValueError("its checksum does not match")
    state = json.loads(body)
    if state["version"] != VERSION:
        raise ValueError(f"version {state['version']} is not {VERSION}")
    return tuple(_rebuild(each) for each in state["rebuilds"])


def _rebuild(state: Mapping[str, Any]) -> Rebuild:
    return Rebuild(
        id=uuid_from_text(state["id"]),
        epoch=_within(state["epoch"], MAX_EPOCH),
        offset=_within(state["offset"], MAX_OFFSET),
    )


def _within(value: object, maximum: int) -> int:
    if type(value) is not int or not 0 <= value <= maximum:
        raise ValueError(f"{value!r} is no number between 0 and {maximum}")
    return value
