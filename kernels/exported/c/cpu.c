/* Runs a compiled CPU kernel: machine code that needs no Python. `words` are its arguments; what of them is a
   pointer is written in before each pass. Threads are whoever calls it: `share` does the pieces side by side. */

typedef void (*piece)(void *user, size_t number);
typedef const char *(*share)(void *where, piece of, size_t count, void *user);

extern void kernelscope_entry(const int64_t *words, int64_t low, int64_t high, float *scratch);
#ifdef HAS_TILES
extern void kernelscope_tiles(void);
#endif
extern const unsigned char kernelscope_tables[];

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void make_scratch_key(void) { pthread_key_create(&scratch_key, free); }

/* Memory of the calling thread alone, kept until the thread ends. */
static float *scratch_of_thread(void) {
    pthread_once(&scratch_once, make_scratch_key);
    void *memory = pthread_getspecific(scratch_key);
    if (memory == NULL) {
        if (posix_memalign(&memory, 256, MOST_SCRATCH + 256) != 0) return NULL;
        pthread_setspecific(scratch_key, memory);
    }
    return memory;
}

struct job {
    const struct step *step;
    const int64_t *words;
    int64_t tasks;
    int failed;
};

static void do_piece(void *user, size_t number) {
    struct job *job = user;
    const int64_t parts = job->step->parts, at = (int64_t)number;
    float *scratch = scratch_of_thread();
    if (scratch == NULL) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    kernelscope_entry(job->words, parts * at / job->tasks, parts * (at + 1) / job->tasks, scratch);
}

/* What the machine code was compiled for, and this processor has not. */
static const char *core_open(void) {
    REQUIRES
    return NULL;
}

static const char *core_run(int size, const void *const *inputs, void *output, share sharing, void *where) {
    const struct step *step = &steps[size];
    int64_t words[MOST_WORDS];
    memcpy(words, step->words, (size_t)step->count * sizeof *words);
    for (int i = 0; i < step->pointers; ++i) {
        const struct place *place = &step->places[i];
        const char *base;
        switch (place->buffer) {
            case BUFFER_OUTPUT: base = output; break;
            case BUFFER_TABLES: base = (const char *)kernelscope_tables; break;
#ifdef HAS_TILES
            case BUFFER_TILES: base = (const char *)(intptr_t)kernelscope_tiles; break;
#endif
            default: base = inputs[place->buffer];
        }
        words[place->word] = (int64_t)(intptr_t)(base + place->offset);
    }
    static long processors;
    if (processors == 0) processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct job job = {step, words, step->tasks < 4 * processors ? step->tasks : 4 * processors, 0};
    if (sharing == NULL || job.tasks <= 1) {
        job.tasks = 1;
        do_piece(&job, 0);
    } else {
        const char *wrong = sharing(where, do_piece, (size_t)job.tasks, &job);
        if (wrong != NULL) return wrong;
    }
    return job.failed ? "memory did not suffice for the scratch of " WORDS : NULL;
}

/* For other programs. size: the number of a size, from 0; inputs: in order, weights too. In the calling thread
   alone. NULL, or what went wrong. */
EXPORTED const char *kernelscope_open(void) { return core_open(); }

EXPORTED const char *kernelscope_run(int size, const void *const *inputs, void *output, void *stream) {
    (void)stream;
    return core_run(size, inputs, output, NULL, NULL);
}
