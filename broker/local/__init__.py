"""A whole cluster in one process, for tests: `quorate.testing` re-exports it.

The nodes are those of `quorate server`, with real sockets and files. Only their clock, transport
and disk are wrapped, so that faults can be injected by node id. The waiting methods poll the
metadata images of the nodes in memory, not the network.

Files in reading order:

- local_cluster.py: the entry point, a context manager for `with` and `async with`.
- cluster.py: the methods of a running cluster, on its event loop.
- local_nodes.py: the nodes of a cluster, and what they know.
- threaded.py: the same methods for blocking callers, with the loop in a thread.
- node.py: one node from start to stop or crash.
- fault_rules.py: the faults of a cluster, and the fault rules of each node because of them.
- layout.py: ids, ports, directories and configs.
- topics.py: the creation of topics.
- errors.py: the errors."""
