"""The rate of the replication throttles, compared with Kafka's SimpleRate."""

from __future__ import annotations

import pytest

from quorate.broker.replication.partitions.simple_rate import SimpleRate

# A random history of org.apache.kafka.common.metrics.stats.SimpleRate with 3 windows of 2 s: values
# that were recorded ("r") and rates that were measured ("m") at times in ms.
KAFKA: tuple[tuple[str, int, float], ...] = (
    ("m", 1252, 0.0),
    ("m", 5019, 0.0),
    ("m", 5265, 0.0),
    ("r", 5957, 31552),
    ("m", 6119, 6482.843640846518),
    ("r", 16595, 43148),
    ("r", 17464, 34203),
    ("m", 23167, 11769.780888618381),
    ("r", 23336, 93582),
    ("r", 23530, 37945),
    ("r", 23912, 65784),
    ("r", 23940, 96595),
    ("r", 24001, 84306),
    ("m", 24065, 189106.0),
    ("r", 24414, 74580),
    ("r", 24596, 26409),
    ("r", 25890, 5888),
    ("r", 26292, 1135),
    ("m", 27693, 107429.07644719399),
    ("r", 29620, 95147),
    ("r", 30679, 1875),
    ("r", 30777, 34245),
    ("r", 30888, 50576),
    ("r", 31086, 28682),
    ("r", 32387, 88494),
    ("m", 32450, 105660.42402826855),
    ("r", 32740, 36782),
    ("r", 33826, 77046),
    ("m", 34018, 93871.53251477945),
    ("r", 34067, 91029),
    ("r", 35777, 73038),
    ("m", 36074, 89388.59621939882),
    ("m", 36296, 86416.11743559017),
    ("r", 36712, 31508),
    ("r", 38098, 42209),
    ("r", 38174, 50703),
    ("m", 39429, 69697.38710593582),
    ("r", 47005, 41167),
    ("r", 47186, 62426),
    ("r", 47517, 22768),
    ("r", 49451, 26292),
    ("r", 49720, 92961),
    ("m", 51748, 51784.52456251317),
    ("m", 51925, 49921.544715447155),
    ("m", 52282, 46544.24862611332),
    ("r", 52401, 99583),
    ("m", 52717, 60433.64845938376),
    ("r", 52778, 89688),
    ("m", 53118, 71141.01096024865),
    ("m", 53450, 67476.33824670287),
    ("r", 53622, 85660),
    ("r", 54472, 23323),
    ("r", 54815, 63058),
    ("r", 54890, 98406),
    ("m", 58620, 73921.53079273195),
    ("r", 59392, 90095),
    ("r", 60843, 49504),
    ("r", 61055, 31453),
    ("r", 62210, 85759),
    ("m", 62481, 83137.26124959534),
)


def test_the_rate_is_kafkas() -> None:
    rate = SimpleRate(3, 2000)
    for event, now_ms, value in KAFKA:
        if event == "r":
            rate.record(int(value), now_ms)
        else:
            assert rate.per_second(now_ms) == pytest.approx(value), now_ms


def test_the_samples_are_bounded() -> None:
    rate = SimpleRate(11, 1000)
    for now_ms in range(0, 100_000, 700):
        rate.record(1, now_ms)
        assert len(rate._samples) <= 12
    assert rate.per_second(100_000) == pytest.approx(1000 / 700, rel=0.1)
    assert rate.per_second(200_000) == 0
