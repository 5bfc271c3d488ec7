"""The numbers of records: all different, each in its partition, ascending for each client."""

from __future__ import annotations

from quorate.cli.chaos.workload.comparison import NOT_ACKNOWLEDGED, Comparison
from quorate.cli.chaos.workload.ledger import CLIENTS, PINNED, ROAMING, Ledger
from quorate.cli.chaos.workload.reader import taken_back
from quorate.cli.chaos.workload.writer import Pace


def test_numbers_of_two_clients_share_partitions_and_nothing_else() -> None:
    ledger = Ledger(partitions=3, record_bytes=10)
    taken = [
        ledger.take(client, partition, 2)
        for _ in range(3)
        for partition in range(3)
        for client in (ROAMING, PINNED)
    ]
    numbers = [number for each in taken for number in each]
    assert sorted(numbers) == list(range(36))
    assert ledger.sent == 36
    assert all(each[0] % 3 == each[1] % 3 for each in taken)


def test_what_two_clients_wrote_between_each_other_is_in_order() -> None:
    ledger = Ledger(partitions=2, record_bytes=10)
    written: list[int] = []
    for client in (PINNED, ROAMING, PINNED):
        numbers = ledger.take(client, 1, 2)
        ledger.acknowledge(numbers, len(written), now_s=1.0)
        written += numbers
    unsure = ledger.take(ROAMING, 1, 2)
    comparison = Comparison(ledger.lines(), ledger.acknowledged, 2, clients=CLIENTS)
    for offset, number in enumerate([*written, *unsure]):
        comparison.read(1, offset, b"%d" % number, ledger.value(number))
    verdict = comparison.verdict()
    assert verdict.good
    assert verdict.acknowledged == ledger.confirmed == 6
    assert ledger.acknowledged[unsure[0]] == NOT_ACKNOWLEDGED
    assert ledger.confirmed_s == {1: 1.0}
    assert not ledger.first_writes()


def test_values_are_told_apart_and_of_one_size() -> None:
    ledger = Ledger(partitions=1, record_bytes=25)
    values = {ledger.value(number) for number in range(2000)}
    assert len(values) == 2000
    assert {len(value) for value in values} == {25}


def test_pace_follows_the_rate_and_spares_the_brokers() -> None:
    few, many = Pace.of(1200, 12), Pace.of(1200, 1000)
    assert few.records * 12 / few.interval_s == 1250
    assert 1000 / many.interval_s == 250, "batches per second"
    assert many.records == 5


def test_what_was_read_and_is_gone() -> None:
    assert taken_back({0: [4, 6, 8]}, {0: [4, 6, 8, 10]}) == []
    assert taken_back({0: [4, 6, 8], 1: [1]}, {0: [4, 7], 1: [1]}) == [(0, 1), (0, 2)]
