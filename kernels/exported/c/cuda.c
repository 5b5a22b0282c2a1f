/* Launches CUDA kernels by the driver, which is loaded when it is first needed. A pass launches, and copies at
   most a weight into constant memory; it allocates nothing and waits for nothing, so that CUDA graphs capture
   it: but for the first pass on a second stream, which gets scratch memory of its own. */

typedef void *handle;
typedef unsigned long long address;

static struct {
    int (*Init)(unsigned);
    int (*DeviceGet)(int *, int);
    int (*DevicePrimaryCtxRetain)(handle *, int);
    int (*CtxGetCurrent)(handle *);
    int (*CtxSetCurrent)(handle);
    int (*ModuleLoadData)(handle *, const void *);
    int (*ModuleGetFunction)(handle *, handle, const char *);
    int (*ModuleGetGlobal)(address *, size_t *, handle, const char *);
    int (*FuncSetAttribute)(handle, int, int);
    int (*MemAlloc)(address *, size_t);
    int (*MemcpyDtoDAsync)(address, address, size_t, handle);
    int (*LaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
                        void **, void **);
    int (*GetErrorString)(int, const char **);
} driver;

enum { MOST_CONTEXTS = 16, MOST_STREAMS = 64, MAX_DYNAMIC_SHARED = 8 };

/* What is loaded in a context: one for each GPU. */
static struct loaded {
    handle context, modules[MODULES], functions[KERNELS];
    address constants[SIZES];
    int streams;
    struct {
        handle stream;
        int taken;
        address scratch;
    } of_stream[MOST_STREAMS];
} contexts[MOST_CONTEXTS];
static int context_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char message[600];

static const char *failed(const char *doing, int status) {
    const char *why = NULL;
    if (driver.GetErrorString != NULL) driver.GetErrorString(status, &why);
    snprintf(message, sizeof message, WORDS ": %s failed: %s (%d)", doing, why == NULL ? "?" : why, status);
    return message;
}

static const char *load_driver(void) {
    if (driver.GetErrorString != NULL) return NULL;
    handle library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) return WORDS " needs an NVIDIA driver: libcuda.so.1 cannot be loaded";
    const struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"cuInit", &driver.Init},
        {"cuDeviceGet", &driver.DeviceGet},
        {"cuDevicePrimaryCtxRetain", &driver.DevicePrimaryCtxRetain},
        {"cuCtxGetCurrent", &driver.CtxGetCurrent},
        {"cuCtxSetCurrent", &driver.CtxSetCurrent},
        {"cuModuleLoadData", &driver.ModuleLoadData},
        {"cuModuleGetFunction", &driver.ModuleGetFunction},
        {"cuModuleGetGlobal_v2", &driver.ModuleGetGlobal},
        {"cuFuncSetAttribute", &driver.FuncSetAttribute},
        {"cuMemAlloc_v2", &driver.MemAlloc},
        {"cuMemcpyDtoDAsync_v2", &driver.MemcpyDtoDAsync},
        {"cuLaunchKernel", &driver.LaunchKernel},
        {"cuGetErrorString", &driver.GetErrorString},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
        void *found = dlsym(library, wanted[i].name);
        if (found == NULL) {
            snprintf(message, sizeof message, WORDS ": the NVIDIA driver here has no %s", wanted[i].name);
            return message;
        }
        memcpy(wanted[i].to, &found, sizeof found);
    }
    const int status = driver.Init(0);
    return status == 0 ? NULL : failed("starting the driver", status);
}

/* The file beside this library, ended by a zero; NULL if it cannot be read. */
static char *read_beside(const char *name) {
    Dl_info here;
    if (dladdr((const void *)&contexts, &here) == 0 || here.dli_fname == NULL) return NULL;
    const char *slash = strrchr(here.dli_fname, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - here.dli_fname) + 1;
    char *path = malloc(folder + strlen(name) + 1);
    if (path == NULL) return NULL;
    memcpy(path, here.dli_fname, folder);
    strcpy(path + folder, name);
    FILE *file = fopen(path, "rb");
    free(path);
    if (file == NULL) return NULL;
    char *content = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        if (size > 0 && fseek(file, 0, SEEK_SET) == 0 && (content = malloc((size_t)size + 1)) != NULL) {
            if (fread(content, 1, (size_t)size, file) == (size_t)size) {
                content[size] = 0;
            } else {
                free(content);
                content = NULL;
            }
        }
    }
    fclose(file);
    return content;
}

static const char *load_module(int number, handle *module) {
    static const char *const endings[] = {"cubin", "ptx"};
    int status = -1;
    for (int i = 0; i < 2; ++i) { /* a cubin is of one architecture; PTX is compiled for any later one */
        char name[sizeof NAME + 40];
        snprintf(name, sizeof name, NAME ".%d.%s", number, endings[i]);
        char *content = read_beside(name);
        if (content == NULL) continue;
        status = driver.ModuleLoadData(module, content);
        free(content);
        if (status == 0) return NULL;
    }
    if (status >= 0) return failed("loading its cubin and its PTX", status);
    return WORDS ": neither " NAME ".0.cubin nor its PTX lies beside the library; keep these files together";
}

static const char *load_all(struct loaded *here) {
    const char *wrong;
    int status;
    size_t nbytes;
    for (int i = 0; i < MODULES; ++i)
        if ((wrong = load_module(i, &here->modules[i])) != NULL) return wrong;
    for (int size = 0; size < SIZES; ++size) {
        const struct step *step = &steps[size];
        const handle module = here->modules[step->module];
        for (int k = step->first; k < step->first + step->count; ++k) {
            if ((status = driver.ModuleGetFunction(&here->functions[k], module, kernels[k].function)) != 0)
                return failed(kernels[k].function, status);
            if (kernels[k].shared > 48 << 10 &&
                (status = driver.FuncSetAttribute(here->functions[k], MAX_DYNAMIC_SHARED, (int)kernels[k].shared)))
                return failed("asking for shared memory", status);
        }
        if (step->constant != NULL &&
            (status = driver.ModuleGetGlobal(&here->constants[size], &nbytes, module, step->constant)) != 0)
            return failed(step->constant, status);
    }
    if (MOST_SCRATCH > 0) { /* for the first stream */
        if ((status = driver.MemAlloc(&here->of_stream[0].scratch, MOST_SCRATCH)) != 0)
            return failed("allocating scratch memory", status);
        here->streams = 1;
    }
    return NULL;
}

/* What is loaded in the current context, or in the first GPU's where none is current; `lock` is held. */
static const char *loaded_here(struct loaded **here) {
    const char *wrong = load_driver();
    if (wrong != NULL) return wrong;
    handle context = NULL;
    int status = driver.CtxGetCurrent(&context), device;
    if (status == 0 && context == NULL) {
        if ((status = driver.DeviceGet(&device, 0)) == 0 &&
            (status = driver.DevicePrimaryCtxRetain(&context, device)) == 0)
            status = driver.CtxSetCurrent(context);
    }
    if (status != 0) return failed("finding the GPU", status);
    for (int i = 0; i < context_count; ++i)
        if (contexts[i].context == context) {
            *here = &contexts[i];
            return NULL;
        }
    if (context_count == MOST_CONTEXTS) return WORDS ": it is used on too many GPUs at once";
    struct loaded *fresh = &contexts[context_count];
    memset(fresh, 0, sizeof *fresh);
    if ((wrong = load_all(fresh)) != NULL) return wrong;
    fresh->context = context;
    ++context_count;
    *here = fresh;
    return NULL;
}

static const char *scratch_of(struct loaded *here, handle stream, address *scratch) {
    for (int i = 0; i < here->streams; ++i) {
        if (here->of_stream[i].taken && here->of_stream[i].stream != stream) continue;
        here->of_stream[i].taken = 1;
        here->of_stream[i].stream = stream;
        *scratch = here->of_stream[i].scratch;
        return NULL;
    }
    if (here->streams == MOST_STREAMS) return WORDS ": it is used on too many streams at once";
    const int status = driver.MemAlloc(&here->of_stream[here->streams].scratch, MOST_SCRATCH);
    if (status != 0) return failed("allocating scratch memory for another stream", status);
    ++here->streams;
    return scratch_of(here, stream, scratch);
}

static const char *core_open(void) {
    struct loaded *here;
    pthread_mutex_lock(&lock);
    const char *wrong = loaded_here(&here);
    pthread_mutex_unlock(&lock);
    return wrong;
}

static const char *core_run(int size, const void *const *inputs, void *output, handle stream) {
    const struct step *step = &steps[size];
    struct loaded *here = NULL;
    address scratch = 0;
    int status;
    pthread_mutex_lock(&lock);
    const char *wrong = loaded_here(&here);
    if (wrong == NULL && step->scratch) wrong = scratch_of(here, stream, &scratch);
    pthread_mutex_unlock(&lock);
    if (wrong != NULL) return wrong;
    if (step->constant != NULL) {
        const address from = (address)(uintptr_t)inputs[step->constant_input];
        status = driver.MemcpyDtoDAsync(here->constants[size], from, step->constant_nbytes, stream);
        if (status != 0) return failed("copying into constant memory", status);
    }
    for (int k = step->first; k < step->first + step->count; ++k) {
        const struct kernel *kernel = &kernels[k];
        address pointers[MOST_ARGUMENTS];
        void *told[MOST_ARGUMENTS];
        for (int i = 0; i < kernel->arguments; ++i) {
            const struct argument *argument = &arguments[kernel->first_argument + i];
            const address offset = (address)argument->offset;
            told[i] = &pointers[i];
            switch (argument->buffer) {
                case BUFFER_BYTES: told[i] = (void *)(uintptr_t)(argument_bytes + argument->offset); break;
                case BUFFER_NULL: pointers[i] = 0; break;
                case BUFFER_OUTPUT: pointers[i] = (address)(uintptr_t)output + offset; break;
                case BUFFER_WORKSPACE: pointers[i] = scratch + offset; break;
                default: pointers[i] = (address)(uintptr_t)inputs[argument->buffer] + offset;
            }
        }
        const unsigned *grid = kernel->grid, *block = kernel->block;
        status = driver.LaunchKernel(here->functions[k], grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                     kernel->shared, stream, told, NULL);
        if (status != 0) return failed("a launch", status);
    }
    return NULL;
}

/* For other programs. size: the number of a size, from 0; inputs: addresses on the device in order, weights
   too; stream: a CUstream. NULL, or what went wrong. */
EXPORTED const char *kernelscope_open(void) { return core_open(); }

EXPORTED const char *kernelscope_run(int size, const void *const *inputs, void *output, void *stream) {
    return core_run(size, inputs, output, stream);
}
