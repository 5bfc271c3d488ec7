"""Click's commands, groups and arguments with stricter rules and better texts.

- strict_command.py: a command that refuses a repeated option.
- option_rules.py: options that an action ignores, or that exclude each other.
- suggesting_group.py, examples.py: a group that suggests names, and shows examples.
- described_argument.py: a positional argument with a description.
"""
