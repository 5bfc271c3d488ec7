"""Every edge of every field of every (API, version) is fed once, and none is left out unseen.

The names of the edges are derived here from the schemas a second time, so that a generator that
loses some of them is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.layout import SIZE_BYTES, Field
from tests.attacks.shapes import places
from tests.fuzz import requests
from tests.fuzz.engine import MAX_INPUT_BYTES, inputs, replay, swept
from tests.fuzz.ports import REPLICATION_KEYS
from tests.fuzz.target import Crash, Target
from tests.fuzz.targets import TARGETS
from tests.ports.fuzz import valid
from tests.ports.obeyed import is_obeyed
from tests.ports.requests import World

ALL = tuple(sorted(APIS))
KEYS = {"client-port": ALL, "controller-port": ALL, "replication-port": REPLICATION_KEYS}
"""The ports that take Kafka requests, with the APIs whose requests they get."""
INTEGERS = ("int8", "int16", "int32", "int64", "uint16", "uint32")
OTHER_SWEEPS = [each for each in TARGETS if each not in KEYS]


def edges_of(field: Field) -> set[str]:
    """Return the names that the field must have at least."""
    if field.array:
        assert field.count is not None
        own = {"0 elements", f"{field.count.limit + 1} elements", "null"}
        if field.struct is not None:
            return own
        return own | {f"one of {each}" for each in edges_of_value(field)}
    if field.struct is not None:
        return {"null"} if field.nullable else set()
    return edges_of_value(field)


def edges_of_value(field: Field) -> set[str]:
    if field.kind == "string":
        return {f"{size} bytes" for size in (0, 1, 32_767, 32_768, 65_536)} | {"null"}
    if field.kind in INTEGERS:
        bits = 8 * SIZE_BYTES[field.kind]
        return {str(each) for each in (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))}
    if field.kind == "bool":
        return {"0", "1", "2", "255"}
    if field.kind in ("bytes", "records"):
        return {"0 bytes", "1 bytes", "65536 bytes", "null"}
    assert field.kind in ("uuid", "float64"), f"the type {field.kind} has no edges here"
    return {"zero", "all ones"} if field.kind == "uuid" else {"nan", "inf", "-inf"}


@pytest.fixture(scope="module")
def generated() -> Counter[tuple[str, int, tuple[str, ...], str]]:
    found = requests.every_request(ALL)
    return Counter((each.api, each.version, each.path, each.case) for each in found)


def test_every_field_of_every_version_is_at_each_of_its_edges_once(
    generated: Counter[tuple[str, int, tuple[str, ...], str]],
) -> None:
    wanted = {
        (api.name, version, path, name)
        for api, version in requests.versions(ALL)
        for path, field in places(api.request, version, version >= api.flexible_since)
        for name in edges_of(field)
    }
    assert len(wanted) > 6_000
    assert not wanted - generated.keys()
    assert set(generated.values()) == {1}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", KEYS)
def test_a_port_gets_every_request_that_the_schemas_imply(name: str) -> None:
    keys = KEYS[name]
    implied = obeyed = 0
    for each in requests.every_request(keys):
        implied += 1
        obeyed += is_obeyed(each.frame)
    usual = [
        frame
        for frame in valid(World(broker_id=2))
        if int.from_bytes(frame[:2], "big") in keys and not is_obeyed(frame)
    ]
    report = swept(name, TARGETS[name].opened)
    assert report.inputs == implied + len(usual)
    assert report.left_out == obeyed
    assert obeyed < implied / 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OTHER_SWEEPS)
def test_every_other_target_gets_its_systematic_inputs(name: str) -> None:
    with TARGETS[name].opened() as target:
        count = sum(1 for _ in target.systematic())
    report = swept(name, TARGETS[name].opened)
    assert report.inputs == count > 0
    assert report.left_out == 0


LARGE = bytes(MAX_INPUT_BYTES + 1)


class Keeping(Target):
    """A target that notes the sizes of its inputs, and fails at the third one if asked to."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.sizes: list[int] = []

    def feed(self, data: bytes) -> None:
        self.sizes.append(len(data))
        if self.fails and len(self.sizes) == 3:
            raise ValueError("in the test")

    def systematic(self) -> Iterator[bytes]:
        yield from (b"1", LARGE, LARGE, b"22")

    def drawn(self, chance: object) -> bytes:
        return b"333"


def test_a_sweep_feeds_inputs_of_any_size() -> None:
    target = Keeping()

    @contextmanager
    def opened() -> Iterator[Target]:
        yield target

    assert swept("keeping", opened).inputs == 4
    assert target.sizes == [1, len(LARGE), len(LARGE), 2]


def test_runs_with_drawn_inputs_feed_no_large_ones() -> None:
    source = inputs(Keeping(), 1)
    assert {len(next(source)) for _ in range(100)} == {1, 2, 3}


def test_a_crash_in_a_sweep_prints_the_line_that_replays_it() -> None:
    @contextmanager
    def opened() -> Iterator[Target]:
        yield Keeping(fails=True)

    with pytest.raises(Crash, match="replay keeping SWEEP 3 "):
        swept("keeping", opened)
    with pytest.raises(Crash, match="in the test"):
        replay("keeping", opened, "SWEEP", "3")
