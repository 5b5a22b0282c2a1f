"""Charts drawn by matplotlib, for files and reports."""
