"""The form of a comparison."""
