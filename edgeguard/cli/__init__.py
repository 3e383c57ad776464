"""The command line: one file per command, each adding its own parser. Everything printed is printed here."""
