"""The cursor of DescribeTopicPartitions: the topic and the partition that begin the next page."""

from __future__ import annotations

from quorate.quorum.protocol.schemas.cluster import DescribeTopicPartitionsRequest


def is_invalid_cursor(request: DescribeTopicPartitionsRequest) -> bool:
    """Return True if the cursor of the request names a negative partition, or a topic that is not
    among those that the request names. A request without topics means all topics, and its cursor
    may name a topic that was deleted since."""
    cursor = request.cursor
    if cursor is None:
        return False
    named = not request.topics or any(each.name == cursor.topic_name for each in request.topics)
    return cursor.partition_index < 0 or not named
