"""The consensus core of the metadata quorum: KRaft (KIP-595) as a pure function.

`Raft` (raft.py) is the core of one node, voter or observer. Its inputs are messages of other nodes,
records to append, changes of the voters, completed effects, the state of links, and the time. Its
outputs are effects: requests, responses, elections to save, flushes, and news for the node. The
core reads no clock, opens no connection and starts no task. It reads, appends and truncates the log
directly, because these calls are short. `quorum/node/replica/metadata_replica.py` is the only
caller. It carries out the effects in their order, on the node's event loop.

Decisions of the package:

- The disk decides when a message may leave: after `Persist`, no effect leaves the node before that
  election is durable.
- A voter flushes before it fetches, because the offset of a Fetch acknowledges everything below it.
- The leader counts its own records only after its own flush. Followers receive them earlier, so
  that all voters flush at the same time.
- Pre-vote (KIP-996) precedes every election, and a leader without a majority resigns.
- A set of voters is in effect from the append of its record, before the commit. One voter changes
  at a time (KIP-853).
- A voter that lost records catches up before it votes again (catching_up.py).
- Raft does not tolerate Byzantine nodes. A message that contradicts what this node knows is
  refused, and it never stops the node.

Claims of other nodes that this node refuses:

| claim | this node |
|---|---|
| an epoch more than MAX_EPOCH_JUMP above its own, if its log has records | refuses the message |
| another leader of an epoch whose leader it knows (*) | refuses the message |
| records of an epoch after the leader's, or unreadable records | appends nothing, retries |
| a log without records that are committed here | truncates nothing, retries |
| a snapshot below the high watermark, of a later epoch, or too large | fetches none, retries |
| a response to a fetch that names another epoch or leader | retries |

(*) The claim is believed if the known leader is no voter and has never responded to this node, and
the other one is a voter.

Files in reading order:

- states.py: the roles, the allowed transitions, and what each role remembers
- effects.py, messages.py, errors.py, settings.py: the outputs, the messages, the errors, the
  configuration
- core.py: the state that all roles share; log_view.py: the log and snapshots that it needs
- raft.py: the inputs and their dispatch; start.py: the role after a restart
- vote.py, election_timers.py, transitions.py, resignation.py: elections, changes of role, the end
  of a leadership
- leader.py, fetch_serving.py, delayed_fetches.py, high_watermark.py, replica_progress.py: the
  leader
- follower.py, leader_news.py, record_checks.py, epoch_limits.py: followers and observers, and what
  they refuse
- snapshots.py: snapshots between nodes
- control_records.py, voter_set.py, voter_history.py, membership.py, voter_changes.py: the voters
- catching_up.py: a voter that lost its log; generation.py: quorums that were rebuilt offline
- quorum_events.py: the log lines about elections and voters
- election.py, election_file.py, quorum_state.py: the durable vote
- description.py: the response to DescribeQuorum

Sources of the rules:

- Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm"; Ongaro's thesis
- KIP-595 (Raft in Kafka), KIP-630 (snapshots), KIP-853 (dynamic voters), KIP-996 (pre-vote)
- KIP-1166 (a fetch names the high watermark of its sender)
- docs/protocol: each rule with its reason and its tests; R-tags are bugs in tests/scenarios
"""
