"""`quorate console`: one page that shows a running cluster in a browser.

- command.py: the command, with its address and its token.
- server.py: the HTTP server, which sends the page and the tables. access/: the requests that it
  refuses, pure.
- watcher.py: the thread that reads the cluster repeatedly, from any broker that answers.
- cluster_tables.py: the tables of one reading, pure. windows.py: the part of a table that a viewer
  sees, filtered and sorted in steps, pure. slices.py: the driver of the steps.
- explanation.py: the state of one partition, topic, broker or of the quorum, and what led to it.
- past.py, past_tables.py: earlier states, from a metadata log on this machine.
- views/: the tables that are read only while a page shows them.
- actions/: what the page may change with --allow-actions. Without it, the console is read-only.
- chaos_runs.py: the chaos run that writes its progress into a file.
- static/: the page, without a build step. virtual_table.js draws the visible rows only.

The tables come from Kafka's protocol with the security of --command-config, as `quorate status`
reads them. Causes come from `/v1/changes`, if the nodes serve it to this client.
"""
