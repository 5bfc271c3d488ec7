"""Tests of quorum/rpc/kafka: the server and the client of Kafka's protocol."""
