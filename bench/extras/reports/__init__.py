"""Reports of figures that are given, held against what is measured here: of courses, of goals."""
