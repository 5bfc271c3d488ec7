"""A process that is one member of a consumer group, so that a run can kill it.

`python -m quorate.cli.chaos.workload.group_member BOOTSTRAP TOPIC GROUP SESSION_MS [FILE]` joins,
reads and commits until its standard input ends, and then leaves the group. FILE is that of
--command-config. The member prints one JSON object for
each event on a line: `joined`, with the committed offsets of its partitions, 0 without one; `read`,
with the first and the next offset by partition; `committed`; and `error`. `at_s` is the time on the
monotonic clock, which all processes of a machine share. An error never ends the process: it joins
again."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.consumer import Consumer
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.membership import Membership
from quorate.config.listeners import parse_servers

TIMEOUT_S = 5.0
"""The timeout of one request with its retries, in s."""
COMMIT_S = 0.2
"""The time, in s, between two commits."""
RETRY_S = 0.2
HEARTBEATS = 5
"""The heartbeats per session."""


def say(event: str, **values: object) -> None:
    """Print an event."""
    print(json.dumps({"event": event, "at_s": time.monotonic(), **values}), flush=True)


def asked_to_end() -> bool:
    """Return True if the standard input has ended."""
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 1)


def run(
    bootstrap: str, topic: str, group: str, session_ms: int, command_config: str | None = None
) -> None:
    """Be a member until the standard input ends."""
    security = ClientFile.read(command_config).security
    servers = parse_servers("bootstrap", bootstrap.split(","))
    while not asked_to_end():
        admin = Admin(AdminSettings(servers=servers, timeout_s=TIMEOUT_S, security=security))
        member = Membership(
            admin,
            group,
            topic,
            session_timeout_ms=session_ms,
            heartbeat_s=session_ms / 1000 / HEARTBEATS,
        )
        try:
            be_member(member, Consumer(admin, topic))
            member.leave()
            return
        except (Refused, NotReachable, ConnectionLost) as error:
            say("error", what=str(error) or repr(error))
            time.sleep(RETRY_S)
        finally:
            admin.close()


def be_member(member: Membership, consumer: Consumer) -> None:
    """Join, and join again after each rebalance, until the standard input ends."""
    while not asked_to_end():
        partitions = member.join()
        known = member.committed()
        committed = {each: known.get(each, 0) for each in partitions}
        say("joined", partitions=partitions, committed=committed)
        consumer.numbers = partitions
        consumer.seek_to(committed)
        read_until_rebalance(member, consumer)


def read_until_rebalance(member: Membership, consumer: Consumer) -> None:
    """Read and commit until the group rebalances or the standard input ends."""
    due_s = time.monotonic() + COMMIT_S
    done: Mapping[int, int] = {}
    while member.alive() and not asked_to_end():
        if not consumer.numbers:
            time.sleep(RETRY_S)
            continue
        before = {each: consumer.positions[each] for each in consumer.numbers}
        for _ in consumer.poll():
            pass
        after = {each: consumer.positions[each] for each in consumer.numbers}
        read = {each: [before[each], end] for each, end in after.items() if end > before[each]}
        if read:
            say("read", ranges=read)
        if time.monotonic() > due_s and after != done:
            due_s = time.monotonic() + COMMIT_S
            if member.commit(after):
                done = after
                say("committed", offsets=after)


if __name__ == "__main__":
    file_path = sys.argv[5] if len(sys.argv) > 5 else None
    run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), file_path)
