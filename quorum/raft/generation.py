"""The generation of this node's quorum: the number of times that it was rebuilt offline.

`force-voters` rebuilds a quorum that is lost for good from the metadata that survived. Nodes of
different generations refuse each other in their handshake, so the old majority cannot come back.
Each rebuild stores the (last epoch, end offset) of the log that it was made from. The new log
differs from every other log after that point.

A node that meets a node of a later generation follows it there, or stays in its own:

| this node | follows |
|---|---|
| a broker whose log ends at or below the start of the rebuild, in its epoch or an older one | yes:
  all its records are committed, so its log is a prefix of the rebuilt log (leader completeness) |
| a broker with more records or a later epoch | never: it has committed records that the rebuilt
  quorum lacks |
| a node that has a link to its leader | not now: its quorum lives |
| a controller without records and without a vote | yes: it contradicts nothing |
| a controller with records or a vote | never: it could count in the old quorum, too |
| a node whose own rebuilds are not among the other's | never: two rebuilds of one cluster |

A node believes in a later generation only if it has itself connected to a controller address from
its configuration or its log. Any program can connect to a node and send a Hello.

A quorum that lives continues. A node that does not follow logs the reason and stays with its own
quorum, because a rebuild that was made by mistake must not stop a living cluster. A quorum without
a leader does not come back: a controller that has met its successor grants no vote and never gets
beyond pre-vote, until it restarts or its own leader responds (`Raft.superseded`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from quorate.quorum.ids import EpochOffset, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.files.checkpoints import (
    MAX_EPOCH,
    MAX_OFFSET,
    MAX_STATE_FILE_BYTES,
    UNREADABLE,
    read_small,
    replace,
)
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.node_message_bounds import Epoch, Offset
from quorate.quorum.raft.errors import GenerationFileError
from quorate.quorum.seams import Disk

FILE_NAME = "quorate-quorum-generation"
VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """One rebuild. The log up to `end` was kept. Records after it are gone."""

    id: Uuid
    epoch: Epoch
    offset: Offset

    @property
    def end(self) -> EpochOffset:
        """The last epoch and the end offset of the log that was kept."""
        return EpochOffset(self.epoch, self.offset)


Rebuilds = tuple[Rebuild, ...]
"""All rebuilds of a quorum, the oldest first. Their number is the generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuorumState:
    """The facts about this node that decide whether it follows into a later generation.

    `end` is the last epoch and the end offset of its log. `voted` is True if it has voted in its
    current epoch. `directory` is its metadata directory, for the texts.
    """

    rebuilds: Rebuilds
    end: EpochOffset
    is_controller: bool
    voted: bool
    leader_id: int
    """The leader that this node has a link to, or NO_NODE."""
    directory: str


def why_not_follow(mine: LocalQuorumState, theirs: Rebuilds) -> str:
    """Return the reason why this node stays in its generation, or an empty string if it follows.

    `theirs` are the rebuilds of another generation, not those of this node."""
    if not is_later(theirs, mine.rebuilds):
        return (
            "the two quorums were rebuilt apart from each other. Only one of them can be the "
            "quorum of this cluster. Format the nodes of the other one"
        )
    if mine.is_controller and (mine.voted or mine.end.offset > 0):
        return (
            "this controller belongs to the quorum before the rebuild. Format its metadata "
            f"directory and let it join (if it is a broker too, remove {mine.directory} only)"
        )
    if mine.leader_id >= 0:
        return f"this node follows leader {mine.leader_id} of its own quorum, which lives"
    kept = theirs[len(mine.rebuilds)].end
    if mine.end.offset > kept.offset or mine.end.epoch > kept.epoch:
        return (
            f"this broker has committed metadata up to offset {mine.end.offset} of epoch "
            f"{mine.end.epoch}, but the quorum was rebuilt from a log that ends at offset "
            f"{kept.offset} of epoch {kept.epoch}. To keep the records of this broker, stop all "
            "nodes, remove the metadata directory of every node of the rebuilt quorum, which "
            "loses all changes made there since, and run force-voters again with this broker's "
            f"directory, too. To give them up, stop this broker and remove {mine.directory}"
        )
    return ""


def is_later(theirs: Rebuilds, mine: Rebuilds) -> bool:
    """Return True if the quorum of `theirs` was rebuilt, once or more, from that of `mine`."""
    return len(theirs) > len(mine) and theirs[: len(mine)] == mine


class GenerationFile:
    """The file with the rebuilds, next to quorum-state, with a checksum. All calls block."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self.path = f"{directory}/{FILE_NAME}"

    def load(self) -> Rebuilds:
        """Return the rebuilds, empty if there is no file. Raise GenerationFileError if it is
        damaged, and OSError if the disk fails."""
        try:
            content = read_small(self._disk, self.path, max_bytes=MAX_STATE_FILE_BYTES)
            if content is None:
                return ()
            return decode(content)
        except (*UNREADABLE, CorruptCheckpoint) as error:
            raise GenerationFileError(
                f"{self.path} is damaged ({error}), so the generation of this node's quorum is "
                "unknown. Copy the file from a working node of this cluster, or format the disk"
            ) from error

    def save(self, rebuilds: Rebuilds) -> None:
        """Replace the file. It is durable on return. Raise OSError if the disk fails."""
        replace(self._disk, self.path, encode(rebuilds))


def encode(rebuilds: Rebuilds) -> bytes:
    """Return one line of JSON, and one with its CRC-32C."""
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
    """Return the rebuilds. Raise one of UNREADABLE (log/files/checkpoints.py) if the content is
    damaged."""
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
