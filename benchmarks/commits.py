"""Commits per second of the three controllers alone.

The benchmark kills the brokers and sends its requests directly to the active controller. Each
request writes one config record.
"""

from __future__ import annotations

from itertools import count

from benchmarks import pipelined, run
from benchmarks.figure import Figure
from benchmarks.metadata_updates import OUTSTANDING, error_of
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs

BROKER_RESOURCE = 4
ALL_BROKERS = ""
REFUSED = ErrorCode.NOT_CONTROLLER.name


def change(number: int) -> configs.IncrementalAlterConfigsRequest:
    """Return a request that sets a default of all brokers to a value made from `number`.

    With a new number for each request, each one writes a record."""
    value = configs.IncrementalAlterableConfig(
        name="log.retention.ms", config_operation=0, value=str(1_000_000 + number)
    )
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=ALL_BROKERS, configs=(value,)
    )
    return configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def held(address: str, outstanding: int, seconds: float, numbers: count[int]) -> pipelined.Held:
    """Keep `outstanding` requests in flight to one controller for some seconds. Return the result.

    Each request takes the next of `numbers`, so that no two requests are equal. Raise LoadFailed if
    a request fails."""
    return pipelined.hold(
        address,
        configs.IncrementalAlterConfigsRequest.API_KEY,
        change,
        error_of,
        outstanding=outstanding,
        seconds=seconds,
        numbers=numbers,
    )


def active(controllers: str, numbers: count[int]) -> str:
    """Return the address of the active controller, the only one that does not refuse a change.

    Each attempt sends one change. Raise LoadFailed if no controller is active, or a request fails
    for another reason."""
    for address in controllers.split(","):
        try:
            held(address, 1, 0.0, numbers)
            return address
        except pipelined.LoadFailed as refused:
            if REFUSED not in str(refused):
                raise
    raise pipelined.LoadFailed("no controller is active")


def measure(cluster: Cluster, options: Options) -> list[Figure]:
    """Return one rate (per second) and two latencies (ms) for each of the loads in OUTSTANDING.

    The brokers stay dead."""
    numbers = count()
    for broker_id in cluster.broker_ids:
        cluster.kill(broker_id)
    address = active(cluster.controllers, numbers)
    figures = []
    for outstanding in OUTSTANDING:
        answers = held(address, outstanding, options.seconds, numbers)
        figures += answers.figures("commits of three controllers", outstanding)
    return figures


BENCHMARK = Benchmark("commits", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
