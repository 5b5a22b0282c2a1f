"""What every other part of the window uses: its look, layouts, background work, errors, and whether a
display is there."""
