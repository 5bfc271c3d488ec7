"""The moves of replicas between log directories that a reassignment file asks for with `log_dirs`,
with the lines of kafka-reassign-partitions.

Each function with an `admin` blocks, and raises NotReachable if a broker cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.reassign.partition_files import Replica
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import log_dirs as schemas

RETRY_S = 0.1
"""The pause before a move is asked for again. A replica that is new on its broker is not there
yet."""

Targets = Mapping[Replica, str]


class Place(NamedTuple):
    """The log directories of one replica: of its log, and of the future log of a move. None if
    there is no such log in a directory that is online."""

    current: str | None
    future: str | None


def names(replicas: Iterable[Replica]) -> str:
    """Return Kafka's names of replicas, sorted and separated by commas."""
    return ",".join(str(each) for each in sorted(replicas))


def alter(admin: Admin, targets: Targets) -> list[Replica]:
    """Ask each broker to move its replicas. Return those that the brokers have taken. The others
    do not exist on their brokers yet. Raise Refused on any other error."""
    taken: list[Replica] = []
    for broker_id in sorted({each.broker_id for each in targets}):
        dirs: dict[str, dict[str, list[int]]] = {}
        for replica in sorted(targets):
            if replica.broker_id == broker_id:
                topics = dirs.setdefault(targets[replica], {})
                topics.setdefault(replica.topic, []).append(replica.partition)
        request = schemas.AlterReplicaLogDirsRequest(
            dirs=tuple(
                schemas.AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        schemas.AlterReplicaLogDirTopic(name=topic, partitions=tuple(partitions))
                        for topic, partitions in topics.items()
                    ),
                )
                for path, topics in dirs.items()
            )
        )
        answer = _ask(admin, broker_id, request)
        for topic_result in answer.results:
            for each in topic_result.partitions:
                replica = Replica(topic_result.topic_name, each.partition_index, broker_id)
                if each.error_code == ErrorCode.REPLICA_NOT_AVAILABLE:
                    continue
                check(each.error_code, None, f"Failed to alter dir for {replica}")
                taken.append(replica)
    return taken


def _ask(
    admin: Admin, broker_id: int, request: schemas.AlterReplicaLogDirsRequest
) -> schemas.AlterReplicaLogDirsResponse:
    try:
        return admin.ask_node(broker_id, request, schemas.AlterReplicaLogDirsResponse)
    except ConnectionLost as error:
        raise NotReachable(str(error)) from None


def start(admin: Admin, targets: Targets, timeout_s: float, report: Callable[[str], None]) -> None:
    """Ask for the moves until all brokers have taken theirs, and report each success. Raise Refused
    after `timeout_s`."""
    pending = dict(targets)
    end_s = time.monotonic() + timeout_s
    while pending:
        taken = alter(admin, pending)
        for each in taken:
            report(
                f"Successfully started moving log directory to {pending.pop(each)} for replica "
                f"{each.topic}-{each.partition} with broker {each.broker_id} "
            )
        if not pending:
            return
        if time.monotonic() >= end_s:
            raise Refused(
                f"Timed out before log directory move{'' if len(pending) == 1 else 's'} could be "
                f"started for: {names(pending)}"
            )
        time.sleep(RETRY_S)


def places(admin: Admin, replicas: Iterable[Replica]) -> dict[Replica, Place]:
    """Return the log directories of these replicas."""
    wanted = set(replicas)
    found = dict.fromkeys(wanted, Place(None, None))
    for broker_id in sorted({each.broker_id for each in wanted}):
        request = schemas.DescribeLogDirsRequest(topics=None)
        try:
            answer = admin.ask_node(broker_id, request, schemas.DescribeLogDirsResponse)
        except ConnectionLost as error:
            raise NotReachable(str(error)) from None
        check(answer.error_code, None, f"broker {broker_id}")
        for directory in answer.results:
            for topic in directory.topics:
                for each in topic.partitions:
                    replica = Replica(topic.name, each.partition_index, broker_id)
                    if replica in wanted:
                        field = "future" if each.is_future_key else "current"
                        found[replica] = found[replica]._replace(**{field: directory.log_dir})
    return found


def state_line(replica: Replica, target: str, place: Place) -> str:
    """Return the line of --verify about one replica."""
    where = f"Partition {replica.topic}-{replica.partition}"
    if place.current is None:
        return (
            f"{where} is not found in any live log dir on broker {replica.broker_id}. There is "
            "likely an offline log directory on the broker."
        )
    if place.future is None:
        if place.current == target:
            return f"Reassignment of replica {replica} completed successfully."
        return (
            f"{where} on broker {replica.broker_id} is not being moved from log dir "
            f"{place.current} to {target}."
        )
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return (
        f"{where} on broker {replica.broker_id} is being moved to log dir {place.future} instead "
        f"of {target}."
    )


def states(
    topic: str, partition: int, targets: Targets, found: Mapping[Replica, Place]
) -> dict[str, object]:
    """Return the state of a partition's moves for the JSON of --verify, empty if there are none."""
    moves = {
        each.broker_id: {"target": target, **found[each]._asdict()}
        for each, target in targets.items()
        if (each.topic, each.partition) == (topic, partition)
    }
    return {"log_dirs": moves} if moves else {}


def cancel(admin: Admin, targets: Targets, timeout_s: float, report: Callable[[str], None]) -> bool:
    """Cancel the moves of these replicas that are in progress: ask for the directories in which the
    replicas are. Return False if there are none. Raise Refused after `timeout_s`."""
    back = {
        replica: place.current
        for replica, place in places(admin, targets).items()
        if place.current is not None and place.future is not None
    }
    start(admin, back, timeout_s, report)
    return bool(back)
