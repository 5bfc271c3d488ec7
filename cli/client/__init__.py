"""The blocking Kafka client of the command line.

A command sends one request after another, so the client needs no event loop and no threads. All of
its calls block the thread of the command. --timeout bounds the attempts of each request. Failures
are raised as `NotReachable` and `Refused` (cli/client/errors.py), which the command line prints as
one line.

Files in reading order:

- connection.py: one TCP connection, version agreement (KIP-511), framing and decoding.
- client_properties.py, sasl_login.py: the security settings of --command-config, as Java and
  librdkafka name them, and the login by SASL.
- token_settings.py, token_source.py: the bearer tokens of a login by OAUTHBEARER.
- client_file.py: that file, for a command that connects in several ways or processes.
- secured_client.py: connections on an event loop with the same settings.
- admin.py: requests to any node of the bootstrap list, or to one node by its id, with retries.
- quorum.py: the metadata quorum, and the check for an active controller before a change.
- options.py: the click options of every command, and the Admin built from them.
- partitions.py, by_leader.py: the leaders of partitions, and requests to many leaders.
- config_changes.py: IncrementalAlterConfigs for one resource (KIP-339).
- batches.py, consumer.py, producer.py: record batches, a consumer without a group, a producer.
- groups.py, membership.py: requests to group coordinators, and one member of a classic group."""
