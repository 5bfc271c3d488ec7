"""The times of the requests of clients, by API and stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from quorate.quorum.histogram import Histogram
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.rpc.kafka.server_state import Route


def request_times(
    ports: Iterable[Mapping[int, Route]],
) -> Iterator[tuple[tuple[str, str], Histogram]]:
    """Yield ((API, stage), histogram) for the APIs and stages that had a request on one of the
    ports, which are given by their routes."""
    times: dict[tuple[str, str], Histogram] = {}
    for routes in ports:
        for api_key, route in routes.items():
            for stage, histogram in route.times.stages():
                times.setdefault((APIS[api_key].name, stage), Histogram()).add(histogram)
    return iter(times.items())
