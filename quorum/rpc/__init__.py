"""Connections of a node: links, the protocol between nodes, HTTP, and Kafka's protocol.

Every node listens on a few ports. One port can serve several protocols, which the first four bytes
of a connection tell apart. This package turns bytes of connections into messages and calls the
handlers of its users. It makes no decision about the cluster.

Terms:

- A link is one connection that carries whole frames. Its interface is `Link` in `quorum/seams.py`.
- A channel is a link between two nodes after their handshake, with many requests in flight.
- A Kafka connection is a link whose frames are requests of Kafka's protocol.

Inputs: handlers, settings, and the seams (clock, random numbers, transport). Outputs: calls of
these handlers on the event loop, responses, and closed links. A request takes no task and no
future, except through the coroutines `Channel.call`, `KafkaClient.call` and
`KafkaClient.negotiate`.

Files in reading order:

- `transport.py` listens and connects over TCP. `frame_link.py` cuts the byte stream into frames,
  with `kafka_frames.py` and `websocket_frames.py` for the two formats. `delivery.py` passes frames
  to handlers. `websocket.py`, `http.py` and `http_head.py` read what HTTP clients send. `ports.py`
  finds free ports, and `dial_failures.py` has the errors of connections that cannot be opened.
- `messages.py` is the table of node messages. `row_codec.py` compiles their codecs, and
  `msgpack_elements.py` bounds the elements of a frame.
- `hello.py`, `handshake.py` and `node_identity.py` are the handshake of two nodes. `channel.py`
  pipelines requests. `connector.py` keeps a channel to one peer, and `node_server.py` accepts
  channels.
- `budget.py` bounds the memory that peers may hold, `node_link_memory.py` counts it for links
  between nodes, and `tracebacks.py` keeps exceptions from holding frames.
- `kafka/` is the server and the client of Kafka's protocol.

Sources: the msgpack specification, RFC 6455 (WebSocket), RFC 9112 (HTTP/1.1), and Kafka's protocol
guide.
"""
