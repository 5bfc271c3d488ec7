"""The part of a change of broker configs that concerns TLS, and the rule for it.

The keys of TLS (`config/dynamic_tls_keys.py`) name files that only their own broker can read, so
only that broker can check a change of them. It tries the new values before it forwards the change
to the controller. Any other broker refuses the change, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from quorate.config.dynamic_keys import settings_with
from quorate.config.dynamic_tls_keys import dynamic_tls_key, tls_texts
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.clipped import clipped
from quorate.quorum.protocol.field_bounds import STORED_CONFIGS


class TryOut(Protocol):
    """Checks whether this node can use changed keys of TLS (`NodeTls.try_out`)."""

    def __call__(
        self, settings: Mapping[str, Any], names: Iterable[str], done: Callable[[str | None], None]
    ) -> None:
        """Call `done` later, once, with None or with the reason against `settings`. Raise
        ConfigError if the keys `names` cannot be checked."""


@dataclass(frozen=True, slots=True)
class TlsChange:
    """A change of one broker: the typed settings of the broker after it, and the keys that it sets
    or deletes."""

    settings: Mapping[str, Any]
    names: tuple[str, ...]


def tls_change(
    node: NodeConfig,
    broker: str,
    named: Iterable[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> TlsChange | None:
    """Return the change of TLS in a change of the configs of `broker`, or None.

    `named` are the keys in the request. `before` and `after` are the configs of the broker. Raise
    ConfigError if a value is malformed, or if `broker` is not this node."""
    if not broker:  # the controller refuses these keys for all brokers
        return None
    changed = (name for name in named if dynamic_tls_key(name) is not None)
    names = set(islice(changed, STORED_CONFIGS.limit + 1))
    if len(names) > STORED_CONFIGS.limit:
        raise ConfigError(
            f"a change may name at most {STORED_CONFIGS.limit} TLS configs, which are as many "
            "configs as a broker can have"
        )
    stored, wanted = tls_texts(before), tls_texts(after)
    names |= stored.keys() - wanted.keys()
    if not names:
        return None
    if broker != str(node.node_id):
        raise ConfigError(
            f"Unexpected broker id, expected {node.node_id}, but received {clipped(broker)}. Only "
            f"the broker itself can check {clipped(min(names))}"
        )
    settings, ignored = settings_with(node, {}, wanted)
    for name in sorted(names & ignored.keys()):
        raise ConfigError(ignored[name])
    return TlsChange(settings, tuple(sorted(names)))
