"""Numbers and texts as people read them, this program's version, and the streams they are written to."""
