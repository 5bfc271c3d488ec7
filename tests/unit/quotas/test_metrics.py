"""The metrics of clients with a quota have a bounded number of samples."""

from __future__ import annotations

from quorate.broker.kafka.broker_quotas import BrokerQuotas
from quorate.broker.metrics.requests import of_quotas
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from tests.unit.rpc.kafka.fakes import FakeClock

KEY = "producer_byte_rate"


def test_only_so_many_clients_have_samples_as_the_setting_says() -> None:
    """A client may invent any number of client ids."""
    quotas = BrokerQuotas(Windows(), ConnectionQuotas(FakeClock()))
    quotas.clients.produce.configure({(("client-id", None),): {KEY: 100.0}})
    for client in ("c", "a", "b"):
        quotas.clients.produce.record(client, 900, 0)
    shown = {each.name: each.samples for each in of_quotas(quotas, 0, 2)}
    rates = shown["kafka_server_produce_byte_rate"]
    assert [each.labels["client_id"] for each in rates] == ["a", "b"]
    left_out = {
        each.labels["quota"]: each.value for each in shown["quorate_metrics_left_out_quota_clients"]
    }
    assert left_out == {KEY: 1, "consumer_byte_rate": 0, "request_percentage": 0}
