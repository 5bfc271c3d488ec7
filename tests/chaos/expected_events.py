"""The events that the logs of the nodes must contain after each scenario, as patterns.

The links of clients and the wall clocks cause no event of the cluster. The logs of these scenarios
must not name a broker that is missed (FALSE_ALARMS)."""

from __future__ import annotations

FENCED, MOVED = r"fenced broker \d+ ", r"moved the leadership of "
REGISTERED = r"broker \d+ registered again with epoch"
ELECTED = (r"won the election of epoch [2-9]", r"is the active controller of epoch [2-9]")
CREATED = r"created \d+ topic"
LEADS = r"this broker leads [1-9]\d* and follows \d+ from a new epoch"
DISK = r"the node stops: /\S+ \(topic \S+, partition \d+\): .*[Tt]hen start the node again\."
SHRANK = r"shrank the ISR of \d+ partitions? \(.*-\d+.*\) by broker \d+.* \[isr-shrink-lag\]"
EXPANDED = r"expanded the ISR of \d+ partitions? \(.*-\d+.*\) by broker \d+.* \[isr-expand\]"
LATE_FETCH = r"broker \d+ answered a fetch after \d+ ms"
SLOW_METADATA_FLUSH = r"the flush of /\S*/__cluster_metadata-0 took [3-9]\d\d\d ms"
FALSE_ALARMS = (r"\[session-expired\]", r"\[connection-lost\]", r"\[isr-shrink-lag\]")
QUIET = ("client-links", "clock-skew")
"""The scenarios without any of FALSE_ALARMS."""

EVENTS = {
    "client-links": (CREATED, LEADS),
    "clock-skew": (CREATED, LEADS),
    "controller-kill": (*ELECTED, "does not answer or is gone"),
    "controller-partition": (*ELECTED, "resigned as the leader", "no longer the active controller"),
    "disk-error": (DISK, FENCED, MOVED, REGISTERED, *ELECTED),
    "disk-full": (DISK, FENCED, MOVED, REGISTERED, *ELECTED),
    "flapping-isr": (SHRANK, EXPANDED, LATE_FETCH),
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
    "slow-disk": (SLOW_METADATA_FLUSH,),
    "slow-link": (SHRANK, EXPANDED, LATE_FETCH),
}
