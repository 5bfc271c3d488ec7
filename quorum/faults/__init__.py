"""Fault injection for one running node: faults of its links, clock, disk and process.

Input: fault rules, from a test in the same process or over a Unix socket. Effect: the node's seams
(clock, transport, disk; see `quorum/seams.py`) obey the rules. The node's own code does not change.

Decisions that hold for the whole package:

- `with_faults` wraps the seams of one node, and one `Faults` object governs all of them. Other
  nodes in the process are not affected.
- `Rules` are a value. Each call of `Faults.apply` replaces all rules, and the new ones hold when
  the call returns.
- Every callback to the node passes `Faults.run`. It queues callbacks while the node is paused and
  discards them after a crash, so order is always preserved.
- All state belongs to the thread of the event loop. Only the disk's work runs in another thread.

Files in reading order:

- rules.py: the rules and their JSON
- faults.py: the rules in force, and the gate for callbacks
- wrappers.py, clock.py, disk.py, transport.py, link.py, line.py: the wrapped seams
- witness.py: the time at which each message type was last sent
- control.py: the Unix socket, and the leases that end faults whose tool has ended
"""
