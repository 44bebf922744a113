"""The `gemmsim-validate` command, with a file for each subcommand."""
