"""The `gemmsim-validate` command: one file a subcommand."""
