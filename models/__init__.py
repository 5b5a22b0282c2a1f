"""Models and data: the catalogue, model builders, data sets, and the trained weights that ship."""
