"""The commands of the command line, one module each. Only typer is imported before a command is chosen, so
that `--help` is quick; each function imports what it needs."""
