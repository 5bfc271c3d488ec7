"""The client port of a broker: the handlers of Kafka's requests.

Decisions:

- Each API has a handler. Most modules hold one API and have its name. `client_port.py` maps the
  APIs to the handlers.
- Metadata is answered from the broker's committed image. The brokers and leaders of one Metadata
  response come from one image.
- Requests that only the active controller can decide, such as CreateTopics, are forwarded to it in
  Kafka's own bytes (KIP-590). `FORWARDED_API_KEYS` lists their APIs.
- Produce and Fetch get raw bytes and use the hand-written codecs of `quorum/protocol/hot`.
  Forwarded requests are raw bytes, too. All other handlers get decoded messages.
- A handler returns None when it has finished or waits for a callback. If its work grows with the
  request or the cluster, it returns steps, which the server runs in slices between the requests of
  other connections (`quorum/rpc/kafka/request_scheduler.py`).
- An exception of a handler fails its request. The server answers it or closes the connection
  (`quorum/rpc/kafka/boundary.py`).

Inputs: decoded requests or request bodies, with a `RequestContext` for the response. Outputs:
responses, appends through the replica manager, and calls of the group coordinator and of the active
controller. All code runs on the broker's event loop, and no call blocks.

Files in reading order:

- `client_port.py`: the table of handlers, and the parts of the broker that they use.
- `metadata.py`, `describe_topic_partitions.py`, `describe_cluster.py`, `list_config_resources.py`,
  `client_quotas.py`: answers from the image. `describe_scram.py`: there are no credentials.
- `auto_create.py`, `suspects.py`: missing topics, and answers that wait for the controller.
- `replicas.py`: the interface to the replica manager.
- `produce.py`, `fetch.py`, `list_offsets.py`, `log_lookups.py`, `delete_records.py`,
  `describe_log_dirs.py`, `describe_producers.py`: the logs on this broker.
- `producer_ids.py`: ids for idempotent producers.
- `find_coordinator.py`, `group_requests.py`, `group_membership.py`, `group_admin.py`,
  `offset_commit.py`, `offset_fetch.py`, `offset_fetch_v7.py`, `offset_delete.py`: consumer groups.
- `forwarding.py`: admin requests.
- `request_parts.py`, `result_collector.py`: large requests in parts.

Sources: the message definitions of Kafka 4.1, and the KIPs that the modules cite. Departures from
Kafka are listed in docs/differences.md, and bounds in docs/limits.md.
"""
