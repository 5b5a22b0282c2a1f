"""Live plots of chart definitions."""
