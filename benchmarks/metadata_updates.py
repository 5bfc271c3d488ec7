"""Metadata updates per second through a broker: one config record each, durable on a majority."""

from __future__ import annotations

from itertools import count

from benchmarks import librdkafka, pipelined, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import CpuMeter, Target
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs
from quorate.quorum.protocol.wire import Message

TOPIC = "metadata-updates"
TOPIC_RESOURCE = 2
OUTSTANDING = (1, 32, 256)
"""The numbers of requests in flight, one load for each."""


def change(number: int) -> configs.IncrementalAlterConfigsRequest:
    """Return a request that sets a config of the topic to a value made from `number`.

    With a new number for each request, each one writes a record."""
    value = configs.IncrementalAlterableConfig(
        name="retention.ms", config_operation=0, value=str(1_000_000 + number)
    )
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=(value,)
    )
    return configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def error_of(answer: Message) -> str | None:
    """Return the error of the response as text, or None."""
    assert isinstance(answer, configs.IncrementalAlterConfigsResponse)
    code = answer.responses[0].error_code
    return f"{ErrorCode.of(code).name} {answer.responses[0].error_message}" if code else None


def measure(target: Target, options: Options) -> list[Figure]:
    """Return rates and latencies for several numbers of requests in flight, with the CPU time."""
    client = librdkafka.create_topic(target.bootstrap, TOPIC)
    librdkafka.wait_for_leaders(client, TOPIC, 1)
    numbers = count()
    figures = []
    for outstanding in OUTSTANDING:
        first, meter = next(numbers), CpuMeter(target)
        held = pipelined.hold(
            target.bootstrap,
            configs.IncrementalAlterConfigsRequest.API_KEY,
            change,
            error_of,
            outstanding=outstanding,
            seconds=options.seconds,
            numbers=numbers,
        )
        figures += held.figures("metadata updates", outstanding)
        updates = next(numbers) - first - 1
        if used_us := [each * 1e6 / updates for each in meter.used_s()]:
            figures.append(
                Figure(f"  CPU of all nodes for each, {outstanding}", sum(used_us), "us")
            )
            figures.append(Figure(f"  CPU of the busiest, {outstanding}", max(used_us), "us"))
    return figures


BENCHMARK = Benchmark("metadata_updates", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
