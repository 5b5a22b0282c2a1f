/*
op = "matrix_transpose"
rung = 2
name = "shared_tile"
idea = "A tile of 32 × 32 goes through shared memory: rows are read side by side and written side by side. Its columns lie in one bank, so a warp that reads one waits 32 times."
[defines]
PAD = 0  # elements by which a row of the tile is longer
[[launch]]
grid = ["ceil(n, 32)", "min(65535, ceil(m, 32))"]
block = [32, 8]
*/
#include "turned_tiles.cuh"
