"""The time for which no metadata write succeeds after `kill -9` of the active controller."""

from __future__ import annotations

import time
from statistics import median

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.metadata_updates import TOPIC, change, error_of
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster
from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.quorum import describe_quorum
from quorate.config.listeners import parse_servers
from quorate.quorum.protocol.schemas.configs import IncrementalAlterConfigsResponse

WRITE_TIMEOUT_S = 60.0
PAUSE_S = 0.002
SETTLE_S = 1.0
"""The wait between the recovery of the quorum and the next kill."""
FIRST_VALUE, STEP = 10_000_000, 100_000


def measure(cluster: Cluster, options: Options) -> list[Figure]:
    """Return the median and the longest outage over several kills."""
    client = librdkafka.create_topic(cluster.bootstrap, TOPIC)
    librdkafka.wait_for_leaders(client, TOPIC, 1)
    taken_s = []
    for number in range(options.rounds):
        active = active_controller(cluster.bootstrap)
        first_value = FIRST_VALUE + number * STEP
        write(cluster.bootstrap, first_value)
        killed_s = cluster.kill(active)
        write(cluster.bootstrap, first_value + 1)
        taken_s.append(time.monotonic() - killed_s)
        cluster.restart(active)
        wait_for_three_voters(cluster.bootstrap)
    return [
        Figure("failover of the controller, median", median(taken_s), "s"),
        Figure("failover of the controller, longest", max(taken_s), "s"),
    ]


def write(bootstrap: str, value: int) -> None:
    """Write a config value through a broker, and retry until it succeeds.

    The attempts write `value`, `value + 1` and so on, so that none of them is a no-op. Raise
    RuntimeError after WRITE_TIMEOUT_S, and ConnectionLost if the broker fails."""
    host, port = parse_servers("bootstrap", bootstrap.split(","))[0]
    connection = Connection(host, port, timeout_s=WRITE_TIMEOUT_S, client_id="benchmarks")
    deadline_s = time.monotonic() + WRITE_TIMEOUT_S
    try:
        while True:
            answer = connection.call(
                change(value), IncrementalAlterConfigsResponse, WRITE_TIMEOUT_S
            )
            if (failure := error_of(answer)) is None:
                return
            if time.monotonic() > deadline_s:
                raise RuntimeError(failure)
            time.sleep(PAUSE_S)
            value += 1
    finally:
        connection.close()


def active_controller(bootstrap: str) -> int:
    """Return the node id of the active controller."""
    admin = Admin(AdminSettings(servers=parse_servers("bootstrap", bootstrap.split(","))))
    try:
        return describe_quorum(admin).state.leader_id
    finally:
        admin.close()


def wait_for_three_voters(bootstrap: str) -> None:
    """Wait until all three voters have fetched up to the high watermark, and then SETTLE_S longer.

    The next kill then leaves a majority that has all committed records. Raise RuntimeError after
    WRITE_TIMEOUT_S."""
    deadline_s = time.monotonic() + WRITE_TIMEOUT_S
    admin = Admin(AdminSettings(servers=parse_servers("bootstrap", bootstrap.split(","))))
    try:
        while time.monotonic() < deadline_s:
            state = describe_quorum(admin).state
            ends = [voter.log_end_offset for voter in state.current_voters]
            if len(ends) == 3 and min(ends) >= state.high_watermark:
                time.sleep(SETTLE_S)
                return
            time.sleep(0.05)
        raise RuntimeError("a voter did not catch up")
    except ConnectionLost as error:
        raise RuntimeError("the broker that is asked went away") from error
    finally:
        admin.close()


BENCHMARK = Benchmark("failover_controller", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
