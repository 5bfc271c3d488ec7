"""The demo's tables name the topic, show the demo's own one first, and say what they leave out."""

from __future__ import annotations

from quorate.cli.demo.history_lines import (
    leader_line,
    leaderless_line,
    left_out_line,
    outage_line,
    rank_of,
)

ROW = {
    "topic": "demo",
    "partition": 3,
    "leader": 5,
    "leader_epoch": 1,
    "duration_ms": 1_500,
    "cause": "connection-lost",
    "leaderless_ms": 1_234,
}


def test_the_own_topic_is_first_and_internal_ones_are_last() -> None:
    names = ["__consumer_offsets", "zoo", "demo", "__transaction_state", "a"]
    ordered = sorted(names, key=lambda name: rank_of(name, "demo"))
    assert ordered == ["demo", "a", "zoo", "__consumer_offsets", "__transaction_state"]


def test_lines_name_the_topic() -> None:
    assert leader_line(ROW) == (
        "demo-3                    broker 5   epoch 1      1.500 s  connection-lost"
    )
    assert "  none       epoch 1 " in leader_line({**ROW, "leader": -1, "cause": None})
    assert leaderless_line(ROW) == "demo-3 had no leader for 1,234 ms"


def test_what_is_left_out_is_told() -> None:
    assert left_out_line({"demo": 0}) == ""
    assert left_out_line({"demo": 2, "__consumer_offsets": 1_050, "x": 0}) == (
        "and 1,052 more rows, which only the report has: 1,050 of __consumer_offsets, 2 of demo"
    )


def test_an_outage_that_only_the_clients_saw_is_explained() -> None:
    """The log has no gap, because one record replaces the dead leader by the next one."""
    said = outage_line(700, 0)
    assert said.startswith(
        "clients waited for up to 700 ms, although the log shows a partition without a leader at no"
        " time: the dead leader stays the leader in the log until the controller has noticed the "
    )
    assert "one record then names the next one" in said
    assert "without a leader for 30 ms: " in outage_line(700, 30)
    assert outage_line(20, 30) == outage_line(0, 0) == ""
