/*
op = "matrix_transpose"
rung = 3
name = "padded_tile"
idea = "The rows of the tile are one element longer, so the elements of a column lie in 32 different banks, and nobody waits."
[defines]
PAD = 1  # elements by which a row of the tile is longer
[[launch]]
grid = ["ceil(n, 32)", "min(65535, ceil(m, 32))"]
block = [32, 8]
*/
#include "turned_tiles.cuh"
