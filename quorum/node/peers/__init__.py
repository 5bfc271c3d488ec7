"""The links to other nodes.

- quorum_links.py: connections to the voters. voter_probes.py: does a new voter answer?
- node_requests.py: the boundary of requests of other nodes. speaker.py: for whom they may speak.
- node_tls.py: TLS of all listeners and links of the node.
- node_membership.py: the voters that the configuration names. generations.py: those of rebuilt
  quorums.
"""
