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

In reading order:

- `client_port.py`, `services.py`: the table of handlers, and the parts of the broker that they use.
- `sasl_listener.py`, `token_listener.py`, `broker_quotas.py`: the logins and quotas of a listener.
- `cluster/`: the brokers, topics and settings of the cluster, answered from the image.
- `records/`: the logs on this broker, for producers and consumers.
- `groups/`: consumer groups.
- `admin/`: this broker's configs and log directories.
- `shared/`: large requests in parts, the way to the active controller, and the replica manager.

Sources: the message definitions of Kafka 4.1, and the KIPs that the modules cite. Departures from
Kafka are listed in docs/differences.md, and bounds in docs/limits.md.
"""
