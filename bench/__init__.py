"""The comparison: cases, timing, records, charts, reports, and the worker process."""
