"""The state that a refused admin request must not change: all metadata records, and the groups."""

from __future__ import annotations

from quorate.cli.client.admin import Admin
from quorate.cli.client.groups import Groups
from tests.clients.cluster import run_quorate
from tests.golden.admin_requests import BUSY, IDLE
from tests.golden.nodes import TwoNodes


def state(nodes: TwoNodes, admin: Admin) -> list[str]:
    """Return this state as lines, without the active controller's periodic no-op records."""
    told = run_quorate("dump-log", "--cluster-metadata-decoder", "--files", str(nodes.metadata_log))
    assert told.returncode == 0, told.stderr
    records = [line.partition("payload: ")[2] for line in told.stdout.splitlines()]
    groups = Groups(admin)
    return [
        *(each for each in records if each and "NO_OP_RECORD" not in each),
        *(groups.describe(each).group_state for each in (BUSY, IDLE)),
        str(groups.offsets(IDLE)),
    ]
