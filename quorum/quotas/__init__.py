"""The quotas of clients (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612), pure: rates, bounds, throttle
times.

Inputs: the client quotas of an image, amounts (bytes, percent of CPU, partitions, connections) with
the time at which they were used. Output: the time in ms for which the client must be throttled.

Decisions that hold for the whole package:

- Each node measures for itself. A quota bounds a client on each node and not in the cluster.
- A client without a matching quota is not tracked.
- The number of tracked clients is bounded. A client that is dropped starts again with an empty
  history.
- The package reads no clock. Callers pass monotonic times in ms.

Files in reading order:

- `sampled_rate.py`: Kafka's rate over sample windows, and the throttle time. `token_bucket.py`:
  Kafka's token bucket.
- `matching.py`: the quota that applies to a user and a client id.
- `tracked.py`: a bounded map of the least recently used entries.
- `client_rates.py`: the rates of all clients under one quota. `client_quotas.py`: the three quotas
  of a client port. `connection_rates.py`: connections per IP address.
- `mutation_quotas.py`: partitions that clients create and delete.

Sources of the rules: Apache Kafka 4.1's ClientQuotaManager, ClientRequestQuotaManager,
ControllerMutationQuotaManager, ConnectionQuotas, and its Rate and TokenBucket.
"""
