"""Widgets that know nothing of where they stand."""
