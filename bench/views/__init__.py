"""Results as people read them: tables, drawn charts, reports."""
