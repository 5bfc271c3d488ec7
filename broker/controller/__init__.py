"""A broker towards the active controller: registration, heartbeats, ISR proposals, forwarding.

- `lifecycle.py`: the states of a broker from registration to controlled shutdown.
- `alter_partition_sender.py`: proposals of ISR changes (KIP-497), batched.
- `controller_client.py`: requests to the active controller, also those forwarded for clients
  (KIP-590); `controller_channel.py`: the part of it that the others use.
"""
