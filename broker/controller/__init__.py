"""The requests of a broker to the active controller: registration, heartbeats, ISR changes, and
forwarded requests of clients.

In reading order:

- `lifecycle.py`: the states of a broker from its registration to its controlled shutdown.
- `alter_partition_sender.py`: batched proposals of ISR changes (KIP-497).
- `controller_client.py`: delivery to the active controller, also of client requests (KIP-590);
  `controller_channel.py`: the interface that the others use.

`docs/protocol/broker-sessions-and-hints.md` and `docs/protocol/isr.md` state the rules.
"""
