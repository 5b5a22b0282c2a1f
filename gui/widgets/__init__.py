"""Widgets that do not know where they are used."""
