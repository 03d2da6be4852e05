"""The columnar trace of one host: tables of planes, lines, events and stats."""
