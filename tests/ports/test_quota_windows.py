"""The sample windows of quotas, as a node's keys set them."""

from __future__ import annotations

from typing import Any

from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, running
from tests.ports.requests import READ, produced
from tests.ports.test_quotas import ME, change, topic


def test_the_windows_are_those_of_the_keys() -> None:
    """Two of three windows of 2 s, and a burst of two windows of 3 s."""
    with running(
        quota_window_num="3",
        quota_window_size_seconds="2",
        controller_quota_window_num="2",
        controller_quota_window_size_seconds="3",
    ) as node:
        world = node.prepared()
        request = produced(READ, world.read_id)
        size_bytes = len(encode(request, 9))
        change(node, ME, producer_byte_rate=10.0, controller_mutation_rate=1.0)
        raw = node.connect(BROKER_PORT)
        answer: Any = node.ask(raw, request, 9)
        assert answer.throttle_time_ms == round(size_bytes / 10 * 1000) - 4000
        raw = node.connect(CONTROLLERS_PORT)
        codes = []
        for name, partitions in (("a", 6), ("b", 1), ("c", 1)):
            made: Any = node.ask(raw, topic(name, partitions), 7)
            codes.append(made.topics[0].error_code)
        assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
