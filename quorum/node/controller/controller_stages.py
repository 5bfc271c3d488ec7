"""The part of a controller in /v1/stages: its queue, and the replay of each broker."""

from __future__ import annotations

from typing import Any

from quorate.quorum.controller.controller import Controller
from quorate.quorum.node.controller.controller_shell import ControllerShell


def controller_stages(rules: Controller, shell: ControllerShell) -> dict[str, Any]:
    """Return the requests that wait, and what each broker reported in its last heartbeat. Both are
    empty on a standby controller.

    `replayed` is the end of the broker's metadata image, and `behind` is the number of records that
    it had not replayed then. Both are null if the broker has sent no heartbeat to this active
    controller."""
    backlog = shell.backlog()
    return {
        "active": shell.active,
        "queued": backlog.queued,
        "oldest_ms": backlog.oldest_ms,
        "uncommitted": backlog.uncommitted,
        "brokers": [
            {
                "id": each.broker_id,
                "fenced": each.fenced,
                "replayed": None if each.metadata_offset < 0 else each.metadata_offset + 1,
                "behind": None if each.metadata_backlog < 0 else each.metadata_backlog,
            }
            for each in rules.sessions
        ],
    }
