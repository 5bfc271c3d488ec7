"""The stages in which a request spends its time."""

from __future__ import annotations

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.metering import Metering
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.unit.rpc.kafka.test_metering import TEN_PERCENT
from tests.unit.rpc.kafka.test_server import METADATA, Served, answer, frame


def stages(served: Served) -> dict[str, tuple[int, int]]:
    """Return the number of requests and the sum of ms of each stage that a request had."""
    times = served.server.routes[ApiKey.METADATA].times
    return {name: (each.count, each.sum_us // 1000) for name, each in times.stages()}


def test_a_request_that_its_handler_answers_is_local() -> None:
    def handle(context: RequestContext, request: MetadataRequest) -> None:
        served.clock.advance(3)
        context.respond(answer("c"))

    served = Served({ApiKey.METADATA: handle})
    served.receive(frame(METADATA, 12))
    assert stages(served) == {"total": (1, 3), "local": (1, 3)}


def test_a_request_that_waits_is_remote_after_its_handler() -> None:
    served = Served()
    served.receive(frame(METADATA, 12))
    served.clock.advance(7)
    served.contexts[0].respond(answer("c"))
    assert stages(served) == {"total": (1, 7), "local": (1, 0), "remote": (1, 7)}


def test_a_response_waits_for_an_earlier_one() -> None:
    served = Served()
    served.receive(frame(METADATA, 12, 1), frame(METADATA, 12, 2))
    served.clock.advance(2)
    served.contexts[1].respond(answer("c"))
    served.clock.advance(5)
    served.contexts[0].respond(answer("c"))
    assert stages(served) == {
        "total": (2, 14),
        "local": (2, 0),
        "remote": (2, 9),
        "response": (1, 5),
    }


def test_sliced_work_waits_for_other_work() -> None:
    def handle(context: RequestContext, request: MetadataRequest) -> IncrementalWork[None]:
        served.clock.time_ms += 4
        served.clock.used_cpu_ms += 4
        yield
        served.clock.time_ms += 1
        context.respond(answer("c"))

    served = Served({ApiKey.METADATA: handle})
    other = served.server.accept(type(served.link)())
    served.receive(frame(METADATA, 12))
    other.on_frame(frame(METADATA, 12))
    for _ in range(20):
        served.clock.advance(1)
    found = stages(served)
    assert found["queue"][0] == 1, "the first one did not wait"
    assert found["queue"][1] > 0
    assert sum(found[each][1] for each in ("queue", "local")) == found["total"][1]


def test_sliced_work_that_ends_without_a_response_waits_for_something_else() -> None:
    waiting: list[RequestContext] = []

    def handle(context: RequestContext, request: MetadataRequest) -> IncrementalWork[None]:
        yield
        served.clock.time_ms += 2
        waiting.append(context)

    served = Served({ApiKey.METADATA: handle})
    served.receive(frame(METADATA, 12))
    served.clock.advance(6)
    waiting[0].respond(answer("c"))
    assert stages(served) == {"total": (1, 8), "local": (1, 2), "remote": (1, 6)}


def test_a_throttled_client_is_counted() -> None:
    def handle(context: RequestContext, request: MetadataRequest) -> None:
        served.clock.used_cpu_ms += 1005
        context.respond(answer("c"))

    served = Served({ApiKey.METADATA: handle})
    quotas = ClientQuotas(Windows())
    metering = Metering(served.server, quotas)
    quotas.configure(TEN_PERCENT)
    metering.follow()
    served.receive(frame(METADATA, 12))
    assert stages(served)["throttle"] == (1, 50)
