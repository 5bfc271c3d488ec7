"""The moves of replicas between the log directories of one broker: AlterReplicaLogDirs (KIP-113).

The rules of a request, in this order, for each partition:

| condition                                          | answer                                    |
|----------------------------------------------------|-------------------------------------------|
| the name of the future directory is too long       | INVALID_TOPIC_EXCEPTION                   |
| the directory is not one of log.dirs               | LOG_DIR_NOT_FOUND                         |
| the directory is offline                           | KAFKA_STORAGE_ERROR                       |
| the replica's own log is in an offline directory   | KAFKA_STORAGE_ERROR                       |
| a move to another directory is in progress         | that move is cancelled; then go on        |
| the broker has no such replica                     | REPLICA_NOT_AVAILABLE, or                 |
|                                                    | UNKNOWN_TOPIC_OR_PARTITION if there is no |
|                                                    | such partition. The directory is          |
|                                                    | remembered for a replica that comes later |
| the log is in that directory, or is being moved    | NONE                                      |
| to it                                              |                                           |
| any log directory is offline                       | KAFKA_STORAGE_ERROR                       |
| else                                               | NONE: a move begins                       |

The future logs of all moves are made immediately, so that the moves go on after a restart. One move
copies at a time, in the order of the requests. A move that has caught up gives its turn to the next
one, and copies only new records while it waits for the controller. The log cleaner and retention
leave a replica alone that has a move, as in Kafka.
"""

from __future__ import annotations

import logging

from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.replication.directories.replica_move import MoveContext, ReplicaMove
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.names import MAX_NAME_BYTES, PartitionName, future_directory_name
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import ErrorCode

MAX_PREFERRED = 10_000
"""Directories that are remembered for replicas that do not exist yet. The oldest is removed for a
further one."""
MAX_ASSIGNING = 100
"""The largest number of moves that wait for the controller without a turn. Each one looks for new
records every POLL_MS."""
UNIQUE_DIGITS = 32
"""The length of the random part in the name of a future directory."""

logger = logging.getLogger("quorate.broker.directories")


class ReplicaMoves:
    """The moves of one broker. The event loop owns it.

    Life: `resume` after the first image, `close` at the end. Invariants: a replica has at most one
    move; at most one move copies that has not caught up. `moved` counts the moves that ended in
    their target, and `failed` those that a disk error or damage ended."""

    def __init__(self, context: MoveContext, registry: PartitionRegistry, broker_id: int) -> None:
        """Move the replicas of `registry`, those of the broker `broker_id`."""
        self._context = context
        self._logs = context.logs
        self._registry = registry
        self._broker_id = broker_id
        self._moves: dict[Key, ReplicaMove] = {}
        self._waiting: dict[Key, None] = {}
        """The moves whose future log is open and that have not had their turn."""
        self._copying: ReplicaMove | None = None
        self._assigning: dict[Key, None] = {}
        """The moves that wait for the controller and have given up their turn."""
        self.moved = self.failed = self._copied_bytes = 0
        self._resumed = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._moves)

    def future_log(self, key: Key) -> tuple[str, Log] | None:
        """Return the target of a replica's move and its open future log, or None."""
        move = self._moves.get(key)
        log = None if move is None else move.future_log
        return None if move is None or log is None else (move.target.path, log)

    # --- metrics

    def stages(self) -> dict[str, int]:
        """Return the number of moves in each stage. A move that flushes its future log counts as
        before."""
        counts = {
            "waiting": len(self._waiting),
            "copying": int(self._copying is not None),
            "assigning": len(self._assigning),
        }
        return {"opening": len(self._moves) - sum(counts.values()), **counts}

    @property
    def max_lag(self) -> int:
        """Return the largest number of records that a future log is behind its current log."""
        return max((each.lag for each in self._moves.values()), default=0)

    @property
    def copied_bytes(self) -> int:
        """Return the bytes that all moves have copied since the start of the broker."""
        return self._copied_bytes + sum(each.copied_bytes for each in self._moves.values())

    # --- requests

    def alter(self, name: PartitionName, path: str) -> ErrorCode:
        """Move a replica to the log directory `path`. Return the answer, NONE if the move has begun
        or has nothing to do. Blocks for small files. An OSError takes a directory offline."""
        if len(future_directory_name(name, "x" * UNIQUE_DIGITS).encode()) > MAX_NAME_BYTES:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if path not in self._logs.log_dirs:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if path not in self._logs.online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        hosted = self._registry.find(name.topic, ZERO_UUID, name.partition)
        if hosted is None or not self._resumed or self._closed:
            error = self._registry.why_missing(name.topic, ZERO_UUID, name.partition)
            if error == ErrorCode.KAFKA_STORAGE_ERROR:
                return error
            self._prefer(name, path)
            is_unknown = error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return error if is_unknown else ErrorCode.REPLICA_NOT_AVAILABLE
        move = self._moves.get(hosted.key)
        if move is not None and move.target.path != path:
            logger.info("the move of %r to %s is cancelled", hosted, move.target.path)
            move.cancel()
            self.ended(move)
        elif move is not None:
            return ErrorCode.NONE
        if self._logs.home_of(name) == path:
            return ErrorCode.NONE
        if self._logs.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return self._begin(hosted, self._logs.directory(path))

    def _prefer(self, name: PartitionName, path: str) -> None:
        preferred = self._logs.preferred
        preferred.pop(name, None)
        if len(preferred) >= MAX_PREFERRED:
            del preferred[next(iter(preferred))]
        preferred[name] = path

    def _begin(self, hosted: HostedPartition, target: LogDirectory) -> ErrorCode:
        move = ReplicaMove(self._context, hosted, target, self)
        self._moves[hosted.key] = move
        logger.info("%r is being moved to %s", hosted, target.path)
        self._logs.futures.when_free(move.name, move.begin)
        return ErrorCode.NONE

    # --- turns

    def opened(self, move: ReplicaMove) -> None:
        """Let a move wait for its turn, because its future log is open."""
        self._waiting[move.hosted.key] = None
        self._next()

    def waits_for_controller(self, move: ReplicaMove) -> None:
        """Give the turn of a move that has caught up to the next one, if few others wait for the
        controller. The move goes on without a turn."""
        if self._copying is move and len(self._assigning) < MAX_ASSIGNING:
            self._copying = None
            self._assigning[move.hosted.key] = None
            self._next()

    def ended(self, move: ReplicaMove) -> None:
        """Remove a move that is over, and begin the next one."""
        self._remove(move)
        self._next()

    def _remove(self, move: ReplicaMove) -> None:
        key = move.hosted.key
        if self._moves.get(key) is move:
            del self._moves[key]
            self._waiting.pop(key, None)
            self._assigning.pop(key, None)
            self.moved += move.moved
            self.failed += move.failed
            self._copied_bytes += move.copied_bytes
        if self._copying is move:
            self._copying = None

    def _next(self) -> None:
        """Give the next move its turn, in a later iteration of the event loop: many moves may end
        one after the other because of the same disk error."""
        if self._copying is None and self._waiting and not self._closed:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._copying = self._moves[key]
            self._context.clock.call_soon(self._copying.copy)

    # --- events

    def removed(self, hosted: HostedPartition) -> None:
        """End the move of a replica that is removed. The future log is deleted with the log
        (`LogManager.delete`)."""
        self._stop(hosted.key)

    def taken_offline(self, hosted: HostedPartition) -> None:
        """End the move of a replica whose log directory has failed. The future log stays for the
        next start, which may find the directory again."""
        if self._stop(hosted.key, failed=True):
            self._logs.futures.keep(hosted.name)

    def directory_failed(self, path: str) -> None:
        """End the moves to a directory that has failed, and report where the replicas are."""
        for key in [key for key, move in self._moves.items() if move.target.path == path]:
            self._stop(key, failed=True)

    def _stop(self, key: Key, *, failed: bool = False) -> bool:
        move = self._moves.get(key)
        if move is None:
            return False
        move.failed |= failed
        if not move.over:
            move.stop()
        self._remove(move)
        self._next()
        return True

    def close(self) -> None:
        """End all moves. The next start continues them."""
        self._closed = True
        for move in self._moves.values():
            move.close()

    # --- the start

    def resume(self) -> None:
        """Continue the moves whose future directories the start found. Call it when the replicas
        of the first image are open. Blocks for small files.

        The directory of a replica that is offline stays as it is. Any other one is set aside."""
        self._resumed = True
        for directory in self._logs.directories:
            for name in list(directory.futures):
                try:
                    self._resume(name, directory)
                except (LogError, OSError) as error:
                    self._context.on_failure(error)

    def _resume(self, name: PartitionName, directory: LogDirectory) -> None:
        topic_id = directory.topic_id_of_future(name)
        topic = self._registry.image.topic(name.topic)
        value = None if topic is None else topic.partitions.get(name.partition)
        if (
            topic is None
            or value is None
            or topic_id not in (topic.id, None)
            or self._broker_id not in value.replicas
        ):
            directory.set_future_aside(name)
            return
        key = topic.id, name.partition
        hosted = self._registry.get(key)
        if hosted is None:
            return
        if key in self._moves or self._logs.home_of(name) == directory.path or topic_id is None:
            directory.set_future_aside(name)
        else:
            self._begin(hosted, directory)
