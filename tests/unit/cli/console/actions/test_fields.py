"""The values of actions: what is accepted, and what is refused with which sentence."""

from __future__ import annotations

import re

import pytest

from quorate.cli.console.access.request_rules import RequestRefused
from quorate.cli.console.actions.fields import Values, texts_in, values_of
from quorate.cli.console.actions.table import ACTIONS


def values(action: str, **texts: str) -> Values:
    return values_of(ACTIONS[action].fields, texts)


def test_values_have_the_types_of_their_fields() -> None:
    assert values("create-topic", topic="orders", partitions="12", replicas=" ") == {
        "topic": "orders",
        "partitions": 12,
        "replicas": None,
    }
    assert values("reassign", topic="orders", partition="0", brokers=" 4, 5,6") == {
        "topic": "orders",
        "partition": 0,
        "brokers": (4, 5, 6),
    }
    assert values("elect-all-preferred") == {}


@pytest.mark.parametrize(
    ("action", "texts", "reason"),
    [
        ("create-topic", {}, "topic: a value is needed"),
        ("create-topic", {"topic": "a/b"}, "topic: Topic name is invalid"),
        ("create-topic", {"topic": "t" * 250}, "topic: more than 249 characters"),
        ("create-topic", {"topic": "t", "partitions": "0"}, "partitions: the value must be a numb"),
        ("create-topic", {"topic": "t", "partitions": "2147483648"}, "from 1 to 2,147,483,647"),
        ("create-topic", {"topic": "t", "partitions": "9" * 5000}, "more than 10 characters"),
        ("create-topic", {"topic": "t", "replicas": "32768"}, "from 1 to 32,767"),
        ("create-topic", {"topic": "t", "partitions": "٣"}, "must be a number"),
        ("create-topic", {"topic": "t", "config": "x"}, "the action has no field 'config'"),
        ("reassign", {"topic": "t", "partition": "-1", "brokers": "4"}, "partition: the value"),
        ("reassign", {"topic": "t", "partition": "0", "brokers": "4,,5"}, "brokers, such as"),
        ("reassign", {"topic": "t", "partition": "0", "brokers": "4,5,4"}, "occurs twice"),
        ("reassign", {"topic": "t", "partition": "0", "brokers": "4," * 300}, "400 characters"),
        ("delete-topic", {"topic": "orders"}, "the name of the topic again: a value is needed"),
        ("delete-topic", {"topic": "orders", "again": "order"}, "the value must be orders"),
        ("elect-unclean", {"topic": "t", "partition": "0", "again": "s"}, "the value must be t"),
    ],
    ids=str,
)
def test_a_value_that_breaks_a_rule_is_refused(
    action: str, texts: dict[str, str], reason: str
) -> None:
    with pytest.raises(RequestRefused, match=re.escape(reason)) as refused:
        values(action, **texts)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"topic": 1}', b'{"topic": null}', b"[" * 4000, b"\xff"],
    ids=lambda body: body[:8],
)
def test_a_body_that_is_no_object_of_texts_is_refused(body: bytes) -> None:
    assert texts_in(b'{"topic": "orders"}') == {"topic": "orders"}
    with pytest.raises(RequestRefused, match="the body"):
        texts_in(body)


def test_each_question_names_every_object_of_its_action() -> None:
    for action in ACTIONS.values():
        named = set(re.findall(r"{(\w+)}", action.question))
        assert named == {each.name for each in action.fields if each.same_as is None}, action.name
