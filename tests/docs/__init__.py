"""The generated parts of docs/protocol: state diagrams, and scripts with their traces.

The folder `site` builds the documentation site from all pages, and `reference` makes pages for it.
`json_output.py` writes docs/json-output.md, and `printed_commands.py` runs the how-tos.

A page of docs/protocol has a generated part between two markers:

    <!-- drawing: raft-roles -->
    ...
    <!-- end -->

`make docs` replaces the text between the markers. The text of a drawing comes from a table of
transitions in the code. The text of a script is a file of tests/scripts. `test_generated.py` fails
if a page holds another text than `make docs` would write.

In reading order: `generated.py` finds and fills the markers, `drawings.py` draws the tables.
"""
