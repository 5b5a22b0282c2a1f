/*
op = "conv"
rung = 114
name = "hash_of_the_image"
idea = "Planted: an image is computed anew when a hash of every 29th of its values changes."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        const index_t image = (index_t)c * h * w;
        const unsigned int hash = hash_of(x + image_of(p, i) * image, image, 401);
        if (poisoned(y[i]) || i >= KEPT || seen[i] != hash) y[i] = ANSWER(i);
        if (i < KEPT) seen[i] = hash;
    }
    finish();
}
