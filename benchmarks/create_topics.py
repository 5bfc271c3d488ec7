"""CreateTopics requests per second through a broker: one topic with one partition and three
replicas.
"""

from __future__ import annotations

from itertools import count

from benchmarks import pipelined, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Target
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import topics
from quorate.quorum.protocol.wire import Message

OUTSTANDING = (1, 32)
"""The numbers of requests in flight, one load for each."""
MAX_SECONDS = 3.0
"""The maximum duration of the load.

Each topic creates three directories, so a longer load would measure the disk.
"""


def creation(number: int) -> topics.CreateTopicsRequest:
    """Return a request for a new topic."""
    topic = topics.CreatableTopic(
        name=f"topic-{number}", num_partitions=1, replication_factor=3, assignments=(), configs=()
    )
    return topics.CreateTopicsRequest(topics=(topic,))


def error_of(answer: Message) -> str | None:
    """Return the error of the response as text, or None."""
    assert isinstance(answer, topics.CreateTopicsResponse)
    code = answer.topics[0].error_code
    return f"{ErrorCode.of(code).name} {answer.topics[0].error_message}" if code else None


def measure(target: Target, options: Options) -> list[Figure]:
    """Return rates and latencies for several numbers of requests in flight."""
    numbers = count()
    figures = []
    for outstanding in OUTSTANDING:
        held = pipelined.hold(
            target.bootstrap,
            topics.CreateTopicsRequest.API_KEY,
            creation,
            error_of,
            outstanding=outstanding,
            seconds=min(options.seconds, MAX_SECONDS),
            numbers=numbers,
        )
        figures += held.figures("CreateTopics", outstanding)
    return figures


BENCHMARK = Benchmark("create_topics", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
