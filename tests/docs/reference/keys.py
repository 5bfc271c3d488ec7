"""The pages of the configuration keys of nodes, of topics, and of dynamic configs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from quorate.config.dynamic_broker_keys import DYNAMIC_BROKER_KEYS
from quorate.config.dynamic_keys import DYNAMIC_KEYS
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS
from quorate.config.key import Key, Kind, Update, Value
from quorate.config.node_keys import ALIASES, NODE_KEYS
from quorate.config.not_in_effect import why_not_in_effect
from quorate.config.topic_keys import TOPIC_KEYS
from tests.docs.reference.markdown import code, text

OF_NODES = f"""# Configuration keys of nodes

A node reads these keys from its properties file. Names and units are Kafka's.
`quorate configs` sets the keys that can change while the node runs.

{"".join(f"`{other}` is another name of `{name}`." for other, name in ALIASES.items())}
"""
OF_TOPICS = """# Configuration keys of topics

`quorate topics --create --config` and `quorate configs --entity-type topics` set these keys.
Each can change at any time. A topic without a value has the value of the node key.
"""
OF_BROKERS = """# Keys that exist only as dynamic configs

`quorate configs --entity-type brokers` sets these keys. No file has them.
"""
TABLES: Mapping[str, tuple[str, Mapping[str, Key]]] = {
    "reference/node-keys.md": (OF_NODES, NODE_KEYS),
    "reference/topic-keys.md": (OF_TOPICS, TOPIC_KEYS),
    "reference/dynamic-keys.md": (OF_BROKERS, DYNAMIC_BROKER_KEYS),
}
"""The head and the keys of each page, by its path."""
NUMBERS: tuple[Value, ...] = (-(10**15), 10**15, 0)
REFUSED: Mapping[Kind, tuple[Value, ...]] = {
    **dict.fromkeys((Kind.INT, Kind.SHORT, Kind.LONG, Kind.DOUBLE), NUMBERS),
    Kind.LIST: ((), ("no such value",)),
    Kind.STRING: ("no such value", "", "x" * 2000),
    Kind.PASSWORD: ("short",),
}
"""Values of each kind. Every check refuses one of them, and its answer names the allowed values."""
CHANGES = {
    Update.READ_ONLY: "at a restart of the node",
    Update.PER_BROKER: "while the node runs, for one broker",
    Update.CLUSTER_WIDE: "while the node runs, for one broker or for all",
}


def pages() -> dict[str, str]:
    """Return the pages by path."""
    return {
        path: "\n".join([head, *_sections(keys.values())]) for path, (head, keys) in TABLES.items()
    }


def _sections(keys: Iterable[Key]) -> Iterator[str]:
    for key in keys:
        if not key.internal:
            yield f"## {key.name}\n"
            yield text(key.doc) + "\n"
            yield from (f"- {fact}" for fact in _facts(key))
            yield ""


def _facts(key: Key) -> Iterator[str]:
    yield f"Type: {key.kind.name.lower()}"
    yield f"Default: {_shown(key, key.default)}"
    if key.kafka_default is not None:
        yield f"Default of Kafka: {_shown(key, key.kafka_default)}"
    if allowed := allowed_values(key):
        yield f"Allowed: {text(allowed)}"
    if key.synonyms:
        names = (f"`{name}`" + (f" times {by:,}" if by != 1 else "") for name, by in key.synonyms)
        yield f"Node key: {', or '.join(names)}"
    elif key.name in DYNAMIC_TLS_KEYS:
        yield (
            f"Changes: while the node runs, for one broker and listener, as "
            f"`listener.name.<listener>.{key.name}`; without this prefix, "
            f"{CHANGES[Update.READ_ONLY]}"
        )
    elif key.name not in TOPIC_KEYS:
        row = DYNAMIC_KEYS.get(key.name)
        yield f"Changes: {CHANGES[row.update if row else Update.READ_ONLY]}"
    if reason := why_not_in_effect(key.name):
        yield f"Not in effect: {text(reason)}"


def _shown(key: Key, value: Value) -> str:
    formatted = key.format(value)
    return "none" if formatted is None else code(formatted)


def allowed_values(key: Key) -> str:
    """Return the allowed values in the words of the key's check, or "" if it has no check."""
    if key.check is None:
        return ""
    answers = map(key.check, REFUSED[key.kind])
    return next(answer for answer in answers if answer).replace("one of , ", "empty, or ")
