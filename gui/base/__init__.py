"""What every part of the window stands on: theme, display, threads beside its own, what goes wrong."""
