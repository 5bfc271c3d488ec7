"""The logs that the start found, if there are several log directories: which one counts.

A partition has one log. After an interruption there may be more directories of its name:

| the start found                            | decision                                            |
|--------------------------------------------|-----------------------------------------------------|
| a directory of another topic               | it is set aside (KAFKA-16157)                       |
| two logs of the topic, one of them in the  | that one counts, and the other one is set aside.    |
| directory that the metadata names          | The broker stopped at the end of a move, after the  |
|                                            | swap (`future_logs.py`)                             |
| two logs of the topic, none of them there  | refused, because nothing says which one is right    |
| one log, not in the directory that the     | the replica is offline: the other directory may     |
| metadata names, which may be offline       | have a later log, if a move has ended there         |
| a future log in the directory that the     | it becomes the log of the partition (KAFKA-16082),  |
| metadata names, and no log                 | unless a log may be in an offline directory         |

A move ends only after the metadata has named its target. The log in the named directory therefore
is the later one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from quorate.broker.logs.log_directory import LogDirectory
from quorate.quorum.directory_ids import is_reserved
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.names import PartitionName

logger = logging.getLogger("quorate.broker.replication")


class DuplicateLog(LogError):
    """A partition has a log in two directories, and nothing says which one is right."""

    for_operator = True


class LogMayBeOffline(Exception):
    """The log of a partition may be in a directory that is offline."""


class FoundLogs:
    """The directories in which the start found logs, by partition. The event loop owns it."""

    def __init__(self, ids: Mapping[str, Uuid]) -> None:
        """`ids` are the ids of the log directories that were online at the start, by path."""
        self._ids = ids
        self._found: dict[PartitionName, list[LogDirectory]] = {}
        self.hidden: dict[PartitionName, None] = {}
        """The partitions whose log may be in a directory that is offline."""
        self.lacks_log = False
        """True if the start found a future log, and not the log that it was copied from. The future
        log may lack records that the broker had acknowledged before a clean stop."""

    def add(self, name: PartitionName, directory: LogDirectory) -> None:
        """Add a log that the start found in `directory`, and that is not open."""
        self._found.setdefault(name, []).append(directory)

    def compare(self, futures: Iterable[PartitionName]) -> None:
        """Set `lacks_log`. `futures` are the future logs that the start found, after all logs."""
        self.lacks_log = not all(name in self._found for name in futures)

    def leave(self, name: PartitionName, directory: LogDirectory) -> None:
        """Note that the directory of `name` is still there, although its log was released."""
        directory.unopened.add(name)
        self.add(name, directory)

    def opened(self, name: PartitionName) -> None:
        """Remove a partition whose log is open."""
        self._found.pop(name, None)

    def clear(self) -> None:
        """Remove the directories of no replica, which have been set aside."""
        for name in [each for each in self._found if each not in self.hidden]:
            del self._found[name]

    def is_unopened(self, name: PartitionName) -> bool:
        """Return True if the start found a directory of `name` that is not open yet."""
        return any(name in each.unopened for each in self._found.get(name, ()))

    def home(
        self,
        name: PartitionName,
        topic_id: Uuid,
        assigned: Uuid,
        online: Collection[LogDirectory],
        *,
        any_offline: bool,
        peers_have_it: bool,
    ) -> LogDirectory | None:
        """Return the directory whose log of the partition counts, or None if there is no log. Set
        all others aside. `assigned` is the directory that the metadata names.

        Blocks for small files and renames. Raise LogMayBeOffline, DuplicateLog, CorruptCheckpoint
        or OSError."""
        found = [each for each in self._found.get(name, ()) if name in each.unopened]
        same = of_topic(name, topic_id, [each for each in found if each in online], peers_have_it)
        named = [each for each in online if self._ids.get(each.path) == assigned]
        if not same:
            if any(each not in online for each in found):
                self._hide(name)
            return self._promoted(name, topic_id, named, any_offline=any_offline)
        home = next((each for each in same if each in named), None)
        if home is None and len(same) > 1:
            raise DuplicateLog(
                f"{name} is in both {same[0].path} and {same[1].path}, and the metadata names "
                "another directory. Keep the directory with the later records, and move the other "
                "one out of log.dirs"
            )
        if home is None and not named and any_offline and not is_reserved(assigned):
            self._hide(name)
        home = home or same[0]
        for each in same:
            if each is not home:
                each.unopened.set_aside(name)
        return home

    def _hide(self, name: PartitionName) -> NoReturn:
        self.hidden[name] = None
        raise LogMayBeOffline

    def _promoted(
        self,
        name: PartitionName,
        topic_id: Uuid,
        named: Collection[LogDirectory],
        *,
        any_offline: bool,
    ) -> LogDirectory | None:
        """Let the future log in the named directory become the log of the partition, if there is
        one of this topic."""
        for each in named:
            if name in each.futures and each.topic_id_of_future(name) == topic_id:
                if any_offline:
                    self._hide(name)
                logger.warning(
                    "%s has no log, but a future log in %s, which the metadata names; the future "
                    "log takes its place",
                    name,
                    each.path,
                )
                each.promote_future(name)
                self.add(name, each)
                return each
        return None


def of_topic(
    name: PartitionName, topic_id: Uuid, found: Sequence[LogDirectory], peers_have_it: bool
) -> list[LogDirectory]:
    """Return the directories that have a log of the topic, and set the others aside. Blocks.

    A directory without a readable topic id counts only if no other one has the id: its log was just
    made when the broker stopped (`unopened_directories.py`). Raise CorruptCheckpoint or OSError."""
    same = [each for each in found if each.unopened.topic_id_of(name) == topic_id]
    for each in found:
        if each in same:
            continue
        if same:
            each.unopened.set_aside(name)
        elif each.adopt(name, topic_id, peers_have_it=peers_have_it):
            same.append(each)
    return same
