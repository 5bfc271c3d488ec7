"""The CPU time of the checks of input alone, for one message each.

Two processes of their own do the same work in turn, one with the checks and one without those that
`unchecked_server.py` lists. The shortest of several passes counts, so the figures are steadier than
those of `cost_of_checks`, which loads whole clusters.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from random import Random
from timeit import timeit

from benchmarks import metadata_updates, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.unchecked_server import holder_of, remove_checks

PASSES = 5
"""The number of processes of each kind."""
REPEATS = 7
PASS_S = 0.02
"""The approximate time of one repeat, in s."""
WALL_MS = 1_700_000_000_000

Work = Callable[[], object]


def works() -> Mapping[str, Work]:
    """Return what a node does with one message, by name. The imports follow `remove_checks`, which
    must come first."""
    from quorate.broker.partition.settings import PartitionSettings
    from quorate.quorum.controller.configs import alter_configs as configs
    from quorate.quorum.controller.state.context import Context
    from quorate.quorum.controller.state.hints import Hints
    from quorate.quorum.controller.state.messages import EnvelopeRequest
    from quorate.quorum.controller.state.sessions import Sessions
    from quorate.quorum.controller.state.settings import ControllerSettings
    from quorate.quorum.ids import EpochOffset, Uuid
    from quorate.quorum.log.batches.batch import build_batch
    from quorate.quorum.log.batches.record import Record
    from quorate.quorum.metadata.image import MetadataImage
    from quorate.quorum.metadata.records import ConfigRecord, TopicRecord
    from quorate.quorum.metadata.replay import replay
    from quorate.quorum.protocol.codec import decode, encode
    from quorate.quorum.protocol.schemas.configs import IncrementalAlterConfigsRequest
    from quorate.quorum.rpc.messages import BY_CLASS

    topic = TopicRecord(name=metadata_updates.TOPIC, topic_id=Uuid(bytes(16)))
    image, _ = replay(MetadataImage(), [topic], EpochOffset(1, 0), WALL_MS)
    context = Context(
        settings=ControllerSettings(cluster_id="benchmark", node_id=1),
        random=Random(1),
        sessions=Sessions(timeout_ms=9000),
        hints=Hints(enabled=False, listener=""),
        image=image,
    )
    request = metadata_updates.change(1)
    body = encode(request, 1)
    record = ConfigRecord(
        resource_type=2, resource_name=metadata_updates.TOPIC, name="retention.ms", value="1000001"
    )
    envelope = BY_CLASS[EnvelopeRequest]
    message = EnvelopeRequest(api_key=44, version=1, client_id="benchmarks", body=body)
    row = list(envelope.write(envelope.number, 1, message))

    # the functions at the places where `remove_checks` replaces them
    read_back = holder_of("quorate.quorum.node.controller.controller_decision").read_back
    validate = holder_of("quorate.broker.partition.partition").validate_client_batch

    def batch(records: int, size: int) -> bytearray:
        values = (Record(i, WALL_MS + i // 50, None, b"x" * size, ()) for i in range(records))
        return build_batch(list(values), leader_epoch=-1)

    def produced(data: bytearray) -> Work:
        return lambda: validate(data, PartitionSettings(), WALL_MS)

    return {
        "an update, decoded": lambda: decode(IncrementalAlterConfigsRequest, 1, body),
        "an update, decided": lambda: configs.incremental_alter_configs(context, request),
        "an update, encoded as a record": lambda: read_back([record]),
        "a message between nodes, decoded": lambda: envelope.read(row),
        "a batch of 1 x 1,000 B": produced(batch(1, 1000)),
        "a batch of 16 x 1,000 B": produced(batch(16, 1000)),
        "a batch of 150 x 100 B": produced(batch(150, 100)),
        "a batch of 1,000 x 1,000 B": produced(batch(1000, 1000)),
        "a batch of 9,000 x 100 B": produced(batch(9000, 100)),
    }


def taken_us() -> dict[str, float]:
    """Return the shortest time of each work, in us."""
    taken = {}
    for name, work in works().items():
        work()
        number = max(1, int(PASS_S / timeit(work, number=10) * 10))
        taken[name] = min(timeit(work, number=number) for _ in range(REPEATS)) / number * 1e6
    return taken


def measure(system: str, _: Options) -> list[Figure]:
    """Return for each work the time with the checks, and the part of the checks. Only Quorate has
    these checks."""
    if system != run.QUORATE:
        return []
    passes: dict[str, list[dict[str, float]]] = {"checked": [], "unchecked": []}
    for _pass in range(PASSES):
        for kind, found in passes.items():
            command = (sys.executable, "-m", "benchmarks.checks_alone", kind)
            found.append(json.loads(subprocess.check_output(command)))
    figures = []
    for name in passes["checked"][0]:
        checked, unchecked = (min(each[name] for each in passes[kind]) for kind in passes)
        figures += [
            Figure(name, checked, "us"),
            Figure("  of that its checks", checked - unchecked, "us"),
        ]
    return figures


BENCHMARK = Benchmark("checks_alone", offline=measure)

if __name__ == "__main__":
    if sys.argv[1] == "unchecked":
        remove_checks()
    print(json.dumps(taken_us()))
