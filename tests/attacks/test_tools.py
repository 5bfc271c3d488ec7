"""The instruments themselves: what attackers write is what they mean, and verdicts notice harm."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.batches.compression import decompress
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode, encode
from tests.attacks.batches import records, sealed
from tests.attacks.bombs import gzip_bomb, lz4_bomb, zstd_bomb
from tests.attacks.bystander import Diary, Sequence
from tests.attacks.bystanders import RULE, Window, percentile
from tests.attacks.raw import body_of
from tests.attacks.registry import ITEMS, WITHOUT_ATTACK, attacks
from tests.attacks.shapes import struct_bytes
from tests.attacks.soak_nodes import Level
from tests.attacks.target import NOT_CONNECTED, reached
from tests.ports.requests import BUILDERS, World

VERSIONS = [
    pytest.param(key, version, id=f"{api.name} v{version}")
    for key, api in APIS.items()
    for version in range(api.min_version, api.max_version + 1)
]
WORLD = World(broker_id=2)
SIZE_BYTES = 8 << 20
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_the_writer_without_bounds_writes_what_the_encoder_writes(key: int, version: int) -> None:
    message = BUILDERS[key](WORLD, version)
    assert body_of(message, version) == bytes(encode(message, version))


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_usual_request_of_every_version_can_be_read(key: int, version: int) -> None:
    api = APIS[key]
    flexible = version >= api.flexible_since
    data = struct_bytes(api.request, version, flexible)
    decode(api.request, version, memoryview(data))


def test_every_attack_has_a_name_an_item_and_a_sentence() -> None:
    assert {each.item for each in attacks().values()} == set(ITEMS) - WITHOUT_ATTACK.keys()
    assert all(each.about.endswith(".") for each in attacks().values())


@pytest.mark.parametrize("item", WITHOUT_ATTACK)
def test_an_item_without_an_attack_names_its_reason_and_its_test(item: int) -> None:
    reason, _, test = WITHOUT_ATTACK[item].rpartition(": ")
    path, _, name = test.partition("::")
    assert reason
    assert f"\ndef {name}(" in (ROOT / path).read_text()


def test_a_sealed_batch_is_a_good_one() -> None:
    batch = sealed(records())
    ((position, header),) = batches(batch)
    assert [bytes(each.value or b"") for each in records_of(batch, position, header)] == [
        b"value-0",
        b"value-1",
        b"value-2",
    ]


def test_bombs_expand() -> None:
    """Only the size counts, so the bombs that this test opens are small."""
    import cramjam

    assert len(bytes(cramjam.zstd.decompress(zstd_bomb(SIZE_BYTES)))) == SIZE_BYTES
    assert len(bytes(cramjam.lz4.decompress(lz4_bomb(SIZE_BYTES)))) == SIZE_BYTES
    for codec, bomb in ((4, zstd_bomb(SIZE_BYTES)), (3, lz4_bomb(SIZE_BYTES))):
        assert len(bomb) < SIZE_BYTES / 100
        assert decompress(codec, bomb, SIZE_BYTES) == bytes(SIZE_BYTES)
    assert len(gzip_bomb(SIZE_BYTES)) < SIZE_BYTES / 500


def test_a_consumer_notices_what_is_lost_twice_or_out_of_order() -> None:
    sequence = Sequence()
    assert [bool(sequence.take(number)) for number in (0, 1, 1, 2, 4, 3, 4)] == [
        *(False, False, True, False, True, True, False)
    ]


def test_a_diary_keeps_one_line_for_each_event() -> None:
    file = io.StringIO()
    diary = Diary(file)
    diary.ok(5)
    diary.error("two\nlines")
    diary.count(1, 2)
    kinds = [line.split()[0] for line in file.getvalue().splitlines()]
    assert kinds == ["ok", "error", "count"]


def test_the_ratio_is_the_worse_clients_and_noise_does_not_count() -> None:
    def window(produce_ms: float, consume_ms: float) -> Window:
        return Window(100, 100, produce_ms, consume_ms, (), 1.0)

    assert window(30.0, 90.0).p99_ratio(window(20.0, 30.0)) == 3.0
    assert window(9.0, 9.0).p99_ratio(window(0.1, 0.1)) < 1.0
    assert percentile([float(number) for number in range(1000)], 0.99) == 990.0
    assert percentile([], 0.99) == 0.0


def test_the_page_states_the_bound_on_latency() -> None:
    page = (ROOT / "docs" / "protocol" / "attacks.md").read_text()
    assert RULE in " ".join(page.split())


def test_a_client_that_hangs_is_noticed() -> None:
    """It reports no error and no latency, so its p99 is excellent."""
    assert Window(0, 990, 0.0, 5.0, (), 10.0).silent(0.8) == [
        "the producer handled 0 of 1000 records in 10 s"
    ]
    assert len(Window(700, 700, 5.0, 5.0, (), 10.0).silent(0.8)) == 2
    assert not Window(801, 801, 5.0, 5.0, (), 10.0).silent(0.8)


def test_an_attack_that_reached_no_node_is_noticed() -> None:
    assert not reached({})
    assert not reached({"closed": 0, NOT_CONNECTED: 5})
    assert reached({"closed": 1, NOT_CONNECTED: 5})


def test_a_level_that_is_a_tenth_higher_has_grown() -> None:
    def level(start_mb: float, end_mb: float, kind_mb: float = 0.0) -> Level:
        return Level(1, start_mb, max(start_mb, kind_mb), end_mb, end_mb, 0, 60.0)

    assert level(100.0, 111.0).grew
    assert not level(100.0, 109.0).grew
    assert not level(50.0, 57.0).grew, "the difference is within the noise"
    assert not level(100.0, 50.0).grew
    assert not level(50.0, 105.0, 100.0).grew, "another node of its kind had that level"
