"""The ladder of an operator: its rungs planned, checked, timed beside the reference, told and kept."""
