"""Benchmarks of a cluster, measured from outside, and of parts of a node. Each one is a module.

Decisions:

- Load comes from librdkafka, or from our own asyncio client for pipelined admin requests.
- A figure has a meaning only as a ratio: to a peer under the same load in the same run, or to the
  limits of the machine.
- A benchmark that needs a cluster starts a new one, with three controllers and three brokers. Only
  a peer that is given by its addresses runs already.

Input: command line options. Output: a table or JSON lines.

Commands: `python -m benchmarks` runs all benchmarks, and `python -m benchmarks.produce` runs one.
README.md in this directory describes what is measured and how.

Files in reading order:

- `run.py`, `figure.py`, `target.py`: the runner, its results, and the interface of a cluster.
- `cluster.py`, `kafka_cluster.py`: the two systems that are started here.
- `machine.py`: the limits of the machine.
- `librdkafka.py`, `pipelined.py`: the clients.
- `produce.py`, `consume.py`, `one_record.py` and the other benchmarks.
- `profile.py`, `sampled_server.py`: the share of CPU time of each function.
"""
