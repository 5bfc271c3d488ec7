"""The metrics of the requests of clients, and of their quotas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.metrics import service_table
from quorate.broker.replication.appends.delayed_operations import DelayedOperations
from quorate.broker.replication.fetches.fetch_session_cache import SessionCache
from quorate.quorum.histogram import US_PER_MS, Histogram
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.quotas.connection_rates import CONNECTION_CREATION_RATE
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.watch import metric_table
from quorate.quorum.watch.quotas import client_metrics
from quorate.quorum.watch.request_times import request_times

DELAYED = {
    "DelayedProduce": "Produce",
    "DelayedFetch": "Fetch",
    "DelayedDeleteRecords": "DeleteRecords",
}
"""Kafka's names of the delayed requests, by their class."""


def of_requests(ports: Collection[KafkaServer]) -> Iterator[Metric]:
    """Yield the counts and times of client requests."""
    requests: defaultdict[str, int] = defaultdict(int)
    sizes: defaultdict[str, int] = defaultdict(int)
    failures: defaultdict[str, int] = defaultdict(int)
    for port in ports:
        for api_key, route in port.routes.items():
            name = APIS[api_key].name
            requests[name] += route.requests
            sizes[name] += route.request_bytes
            failures[name] += route.failures
    yield service_table.CLIENT_REQUESTS.each(((name,), count) for name, count in requests.items())
    yield service_table.CLIENT_REQUEST_BYTES.each(((name,), size) for name, size in sizes.items())
    times = dict(request_times(port.routes for port in ports))
    totals = {name: times.get((name, "total"), Histogram()) for name in requests}
    yield service_table.CLIENT_REQUEST_TIME.each(
        ((name,), each.count, each.sum_us / US_PER_MS) for name, each in totals.items()
    )
    yield service_table.CLIENT_REQUEST_STAGES.each(times.items())
    yield service_table.REQUESTS_FAILED.each(((name,), count) for name, count in failures.items())


def of_delayed(operations: DelayedOperations) -> Iterator[Metric]:
    """Yield the number of delayed requests of each kind."""
    sizes = operations.sizes()
    yield service_table.PURGATORY_SIZE.each(
        ((kind,), sizes[name]) for name, kind in DELAYED.items()
    )


def of_fetch_sessions(sessions: SessionCache) -> Iterator[Metric]:
    """Yield the memory of the consumers' fetch sessions."""
    yield service_table.FETCH_SESSION_BYTES.of(sessions.consumer_bytes)
    yield service_table.FETCH_SESSION_MAX_BYTES.of(sessions.max_consumer_bytes)
    yield service_table.FETCH_SESSIONS_ENDED.of(sessions.evicted_for_bytes)


def of_quotas(quotas: BrokerQuotas, now_ms: int, bound: int) -> Iterator[Metric]:
    """Yield the totals, and the rates and throttle times of at most `bound` clients with a
    quota."""
    clients, addresses = quotas.clients, quotas.connection_rates
    totals = [
        *((each.key, each.throttled, each.throttled_ms) for each in clients.rates),
        (CONNECTION_CREATION_RATE, addresses.throttled, addresses.throttled_ms),
    ]
    yield metric_table.QUOTA_THROTTLED.each(((key,), count) for key, count, _ in totals)
    times = (((key,), throttled_ms / 1000) for key, _, throttled_ms in totals)
    yield metric_table.QUOTA_THROTTLE_TIME.each(times)
    left_out = (((each.key,), max(0, each.tracked - bound)) for each in clients.rates)
    yield metric_table.QUOTA_CLIENTS_LEFT_OUT.each(left_out)
    for rates, rate, throttle_time in (
        (clients.produce, metric_table.PRODUCE_RATE, metric_table.PRODUCE_THROTTLE),
        (clients.fetch, metric_table.FETCH_RATE, metric_table.FETCH_THROTTLE),
        (clients.request, metric_table.REQUEST_TIME, metric_table.REQUEST_THROTTLE),
    ):
        yield from client_metrics(rates, rate, throttle_time, now_ms, bound)
