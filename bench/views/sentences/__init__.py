"""Sentences about results: verdicts, findings, what holds a kernel back, what differs between two runs."""
