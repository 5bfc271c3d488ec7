"""Fault rules as values and as JSON. An error names the invalid part."""

from __future__ import annotations

import pytest

from quorate.quorum.faults.rules import Rules, RulesError, rules_from_json, rules_to_json


def test_rules_come_back_from_json() -> None:
    rules = Rules(
        cut=(2, "127.0.0.1:9093"),
        hold=(4,),
        hold_to=("clients",),
        drop=("BrokerHeartbeatRequest", "FetchRequest"),
        delay_ms=5,
        bytes_per_s=1000,
        slow_links="all",
        clock_offset_ms=-7,
        disk_full=("/data",),
        disk_error=("/",),
    )
    assert rules_from_json(rules_to_json(rules)) == rules
    assert rules_from_json("{}") == Rules()
    assert rules_from_json('{"paused": true}') == Rules(paused=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object"),
        ('{"cutt": []}', "unknown key 'cutt': must be one of"),
        ('{"cut": 2}', "cut: value 2 must be a list"),
        ('{"cut": ["node 2"]}', "cut: value 'node 2' must be a node id, the HOST:PORT"),
        ('{"hold": [true]}', "hold: value True must be a node id"),
        (
            '{"drop": ["Heartbeat"]}',
            "drop: value 'Heartbeat' must be one of AddOffsetsToTxnRequest",
        ),
        ('{"drop": [[]]}', "drop: value [] must be one of"),
        ('{"delay_ms": -1}', "delay_ms: value -1 must be a whole number from 0"),
        ('{"delay_ms": 1.5}', "delay_ms: value 1.5 must be"),
        ('{"slow_links": "some"}', "slow_links: value 'some' must be one of ('nodes', 'clients'"),
        ('{"slow_links": []}', "slow_links: value [] must be one of"),
        ('{"bytes_per_s": -1}', "bytes_per_s: value -1 must be a whole number from 0"),
        ('{"clock_offset_ms": true}', "clock_offset_ms: value True must be a whole number"),
        ('{"disk_full": ["data"]}', "disk_full: value 'data' must be an absolute path"),
        ('{"disk_error": [1]}', "disk_error: value 1 must be an absolute path"),
        ('{"disk_error": "/"}', "disk_error: value '/' must be a list"),
        ('{"paused": 1}', "paused: value 1 must be true or false"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(RulesError) as refused:
        rules_from_json(text)
    assert said in str(refused.value)
