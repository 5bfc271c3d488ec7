"""Rehearsals: a scenario of faults, played many times on the metadata of a real cluster. Pure.

- `assumptions.py`: the times that the metadata log does not contain.
- `virtual_controller.py`: the controller's production rules, with a log and a clock that are not
  real.
- `timeline.py`, `requests.py`: the virtual time, and the messages of brokers.
- `virtual_replicas.py`: the replicas, which leave ISRs, catch up and join them.
- `virtual_cluster.py`: the nodes, which heartbeat, stop, start, and fail over.
- `scenarios.py`: the scenarios, each a generator of waits.
- `troubles.py`: the times during which partitions could not be written.
- `outcome.py`, `rehearse.py`: the outcome of one run, and the distribution over many seeds.

Production code: sessions, fencing, elections (clean and unclean), controlled shutdown,
registration, ISR changes, and the replay of their records. They are the rules of
`quorum/controller`, which an active controller runs.

Modelled: the time of each step, which a seed draws from `assumptions.py`. Not modelled: the load of
clients, data volumes, the delay until brokers and clients notice new metadata, and hints
(quorate.hints.enable). A death is thus noticed when the session expires, as in Kafka.
"""
