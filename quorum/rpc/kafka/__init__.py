"""The server and the client of Kafka's protocol on one port.

The server turns frames into requests, calls their handlers, and sends the responses in the order of
the requests. It bounds everything that clients can take from a node: connections, memory, CPU and
log lines. The handlers live in `broker/kafka/` and `quorum/node/`.

Inputs: a table of handlers by API key, frames, settings. Outputs: calls of the handlers with a
RequestContext, and responses.

Files in reading order:

- `server.py` is the server of one port. `server_state.py` holds its routes and settings.
- `connection.py` is the queue of one connection. `context.py` is one request, through which its
  handler answers.
- `metered_context.py` measures a request and throttles its client while quotas are set.
  `metering.py` switches that on and off. `reading_pause.py` is the time in which a connection is
  not read.
- `boundary.py` decides for each exception if it fails the request or stops the node.
- `request_scheduler.py` runs long requests in slices. `connection_quotas.py` bounds connections and
  queued requests. `idle_connections.py` closes unused connections. `node_resources.py` holds the
  CPU and memory that all Kafka ports of a node share.
- `api_versions.py` and `sasl.py` handle two APIs that every port serves.
- `client.py` is the client.

Sources: Kafka's protocol guide, KIP-35 and KIP-511 (ApiVersions), KIP-612 (connection creation
rate).
"""
