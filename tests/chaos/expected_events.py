"""The events that the logs of the nodes must contain after each scenario, as patterns."""

from __future__ import annotations

FENCED, MOVED = r"fenced broker \d+ ", r"moved the leadership of "
REGISTERED = r"broker \d+ registered again with epoch"
ELECTED = (r"won the election of epoch [2-9]", r"is the active controller of epoch [2-9]")
CREATED = r"created \d+ topic"
LEADS = r"This broker now leads \d+"
DISK = r"the node stops: /.* (topic|Then start the node)"

EVENTS = {
    "client-links": (CREATED, LEADS),
    "clock-skew": (CREATED, LEADS),
    "controller-kill": (*ELECTED, "does not answer or is gone"),
    "controller-partition": (*ELECTED, "resigned as the leader", "no longer the active controller"),
    "disk-error": (DISK, FENCED, MOVED, REGISTERED, *ELECTED),
    "disk-full": (DISK, FENCED, MOVED, REGISTERED, *ELECTED),
    "flapping-isr": (CREATED, LEADS),
    "group-restart": (MOVED, REGISTERED, CREATED),
    "heartbeat-timeout": (FENCED, r"\[session-expired\]", MOVED),
    "leader-kill": (FENCED, r"\[connection-lost\]", MOVED, REGISTERED, "unfenced broker"),
    "lost-messages": (FENCED, r"\[session-expired\]", MOVED, *ELECTED),
    "paused-broker": (FENCED, r"\[session-expired\]", MOVED),
    "paused-controller": ELECTED,
    "power-loss": (REGISTERED, "the active controller of epoch"),
    "quorum-loss": (*ELECTED, "the metadata quorum is lost, as node|not ready for"),
    "rack-loss": (FENCED, r"\[connection-lost\]", MOVED, REGISTERED),
    "reassign-under-fire": (*ELECTED, FENCED, MOVED, REGISTERED),
    "rolling-restart": ("began a controlled shutdown", MOVED, REGISTERED, *ELECTED),
    "slow-disk": (CREATED, LEADS),
    "slow-link": (CREATED, LEADS),
}
