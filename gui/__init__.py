"""What the user sees. Widgets show state and emit intent, and compute nothing."""
