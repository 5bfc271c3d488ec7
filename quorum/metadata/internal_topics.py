"""The topics that coordinators own.

Clients may read them, but only the coordinators write to them.
"""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic of the group coordinators."""
INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, "__transaction_state", "__share_group_state"))
"""The internal topics of Kafka 4.1. Of these, Quorate creates only OFFSETS_TOPIC."""
