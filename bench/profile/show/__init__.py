"""A profile as people read it: tables, findings, remarks, the drawn timeline, traces, reports."""
