"""A ladder as people read it: rows with what follows from them, tables, stories, reports."""
