"""What helps a user along: the glossary, the sheet of shortcuts, the tour of the first start."""
