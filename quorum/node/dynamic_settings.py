"""The settings of one node: its file, overridden by the dynamic configs of the metadata.

`config/dynamic_keys.py` has the keys that the metadata may override.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from quorate.config.dynamic_keys import settings_with
from quorate.config.dynamic_tls_keys import listeners_of, tls_texts
from quorate.config.key import ConfigError
from quorate.config.node_config import NodeConfig
from quorate.quorum.clipped import clipped
from quorate.quorum.metadata.image import BROKER_RESOURCE, MetadataImage
from quorate.quorum.metadata.persistent_map import PersistentMap

ALL_BROKERS = (BROKER_RESOURCE, "")
"""The resource whose configs apply to all brokers and controllers."""
NOTHING: PersistentMap[str, str] = PersistentMap()
MAX_NAMED = 20
"""The maximum number of ignored configs that one log line names."""

logger = logging.getLogger("quorate.config")


class DynamicSettings:
    """Computes the settings of one node from images. The event loop owns it.

    It computes them only if the dynamic configs of this node have changed since the last call."""

    def __init__(self, config: NodeConfig, *, logs: bool = True) -> None:
        """Begin with the node's file. If `logs` is True, a WARN line names the dynamic configs that
        the node ignores."""
        self._config = config
        self._own = (BROKER_RESOURCE, str(config.node_id))
        self._logs = logs
        self._configs: object = None
        self._texts = NOTHING, NOTHING
        self._settings: Mapping[str, Any] = config

    def __call__(self, image: MetadataImage) -> Mapping[str, Any]:
        """Return the typed settings of the node in `image`, by key.

        The result is the same object as before if the configs are the same."""
        if image.configs is self._configs:
            return self._settings
        self._configs = image.configs
        texts = image.configs.get(ALL_BROKERS, NOTHING), image.configs.get(self._own, NOTHING)
        if texts[0] is self._texts[0] and texts[1] is self._texts[1]:
            return self._settings
        changed = texts != self._texts
        self._texts = texts
        if changed:
            self._settings, ignored = settings_with(self._config, *texts)
            ignored |= without_listener(self._config, texts[1])
            if ignored and self._logs:
                self._warn(ignored)
        return self._settings

    def _warn(self, ignored: Mapping[str, str]) -> None:
        named = [f"{clipped(name)}: {clipped(why)}" for name, why in sorted(ignored.items())]
        rest = len(named) - MAX_NAMED
        logger.warning(
            "node %d ignores dynamic configs of the metadata log, which can be deleted: %s%s",
            self._config.node_id,
            "; ".join(named[:MAX_NAMED]),
            f"; and {rest} more" if rest > 0 else "",
        )


def without_listener(config: NodeConfig, own: Mapping[str, str]) -> dict[str, str]:
    """Return the dynamic keys of TLS that no listener of this node obeys any more, with reasons."""
    found = {}
    for name in tls_texts(own):
        try:
            listeners_of(config, (name,))
        except ConfigError as error:
            found[name] = str(error)
    return found
