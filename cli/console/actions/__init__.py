"""The actions of `quorate console --allow-actions`: what a page may change in the cluster.

- table.py: the actions as data, each with its fields and its question.
- fields.py: the kinds of fields with their bounds, pure.
- requests.py: the request of each action, with the functions that the commands use. The cluster
  therefore applies the permissions of the user in --command-config, and reports its own errors.
- routes.py: the requests of the page, one action at a time, and the line of log of each.

Without the flag the server has none of these routes, and the page has no buttons.
"""
