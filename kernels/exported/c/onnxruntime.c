/* The custom operator of ONNX Runtime. Its C API is a table of functions that grows at its end: what is used of
   it stands here by its place, and the table is asked for by the version that has all of it. */

enum { API_VERSION = 17, API_FIRST = 1, FAILED = 1 };

typedef struct opaque opaque; /* an object of ONNX Runtime's */
typedef struct { void (*entry[275])(void); } Api;
typedef struct {
    const Api *(*get)(uint32_t version);
    const char *(*version)(void);
} ApiBase;

/* Their places in OrtApi. */
#define CREATE_STATUS(api) ((opaque * (*)(int, const char *))(api)->entry[0])
#define CREATE_DOMAIN(api) ((opaque * (*)(const char *, opaque **))(api)->entry[26])
#define DOMAIN_ADD(api) ((opaque * (*)(opaque *, const struct custom_op *))(api)->entry[27])
#define ADD_DOMAIN(api) ((opaque * (*)(opaque *, opaque *))(api)->entry[28])
#define GET_DATA(api) ((opaque * (*)(opaque *, void **))(api)->entry[51])
#define CREATE_SHAPE(api) ((opaque * (*)(opaque **))(api)->entry[57])
#define SET_TYPE(api) ((opaque * (*)(opaque *, int))(api)->entry[58])
#define SET_DIMENSIONS(api) ((opaque * (*)(opaque *, const int64_t *, size_t))(api)->entry[59])
#define COUNT_DIMENSIONS(api) ((opaque * (*)(const opaque *, size_t *))(api)->entry[61])
#define GET_DIMENSIONS(api) ((opaque * (*)(const opaque *, int64_t *, size_t))(api)->entry[62])
#define GET_SHAPE(api) ((opaque * (*)(const opaque *, opaque **))(api)->entry[65])
#define GET_INPUT(api) ((opaque * (*)(const opaque *, size_t, const opaque **))(api)->entry[90])
#define GET_OUTPUT(api) ((opaque * (*)(opaque *, size_t, const int64_t *, size_t, opaque **))(api)->entry[91])
#define RELEASE_STATUS(api) ((void (*)(opaque *))(api)->entry[93])
#define RELEASE_SHAPE(api) ((void (*)(opaque *))(api)->entry[99])
#define GET_STREAM(api) ((opaque * (*)(const opaque *, void **))(api)->entry[193])
#define INFER_INPUT(api) ((opaque * (*)(const opaque *, size_t, opaque **))(api)->entry[268])
#define INFER_OUTPUT(api) ((opaque * (*)(opaque *, size_t, const opaque *))(api)->entry[270])
#define PARALLEL_FOR(api) \
    ((opaque * (*)(const opaque *, void (*)(void *, size_t), size_t, size_t, void *))(api)->entry[274])

struct custom_op {
    uint32_t version;
    void *(*create)(const struct custom_op *, const Api *, const opaque *);
    const char *(*name)(const struct custom_op *);
    const char *(*provider)(const struct custom_op *);
    int (*input_type)(const struct custom_op *, size_t);
    size_t (*input_count)(const struct custom_op *);
    int (*output_type)(const struct custom_op *, size_t);
    size_t (*output_count)(const struct custom_op *);
    void (*compute)(void *, opaque *);
    void (*destroy)(void *);
    int (*input_characteristic)(const struct custom_op *, size_t);
    int (*output_characteristic)(const struct custom_op *, size_t);
    int (*input_memory)(const struct custom_op *, size_t);
    int (*variadic_inputs)(const struct custom_op *);
    int (*variadic_inputs_alike)(const struct custom_op *);
    int (*variadic_outputs)(const struct custom_op *);
    int (*variadic_outputs_alike)(const struct custom_op *);
    opaque *(*create_v2)(const struct custom_op *, const Api *, const opaque *, void **);
    opaque *(*compute_v2)(void *, opaque *);
    opaque *(*infer)(const struct custom_op *, opaque *);
    int (*first_version)(const struct custom_op *);
    int (*last_version)(const struct custom_op *);
};

static const Api *api_of_session;

static const char *op_name(const struct custom_op *op) { (void)op; return NAME; }
static int type_of_input(const struct custom_op *op, size_t i) { (void)op; return input_types[i]; }
static size_t count_of_inputs(const struct custom_op *op) { (void)op; return INPUTS; }
static int type_of_output(const struct custom_op *op, size_t i) { (void)op; (void)i; return OUTPUT_TYPE; }
static size_t one(const struct custom_op *op) { (void)op; return 1; }
static int zero_of(const struct custom_op *op, size_t i) { (void)op; (void)i; return 0; }
static int zero(const struct custom_op *op) { (void)op; return 0; }
static int version_one(const struct custom_op *op) { (void)op; return 1; }
static int any_version(const struct custom_op *op) { (void)op; return INT32_MAX; }
static void destroy(void *kernel) { (void)kernel; }

static opaque *create(const struct custom_op *op, const Api *api, const opaque *info, void **kernel) {
    (void)op;
    (void)info;
    *kernel = (void *)(uintptr_t)api;
    const char *wrong = core_open();
    return wrong == NULL ? NULL : CREATE_STATUS(api)(FAILED, wrong);
}

/* A shape in words, behind what `text` has. */
static void add_shape(char *text, size_t room, const int64_t *dims, size_t rank) {
    for (size_t i = 0; i < rank; ++i) {
        const size_t at = strlen(text);
        snprintf(text + at, room - at, i ? "x%lld" : "%lld", (long long)dims[i]);
    }
}

static int is_shape(const struct shape *shape, const int64_t *dims, size_t rank) {
    return shape->rank == (int)rank && memcmp(shape->dims, dims, rank * sizeof *dims) == 0;
}

static opaque *unknown_size(const Api *api, int input, const int64_t *dims, size_t rank) {
    char text[900] = WORDS ": it was exported for an input of ";
    for (int size = 0; size < SIZES; ++size) {
        if (size > 0) strncat(text, ", ", sizeof text - strlen(text) - 1);
        add_shape(text, sizeof text, sizes[size].inputs[input].dims, (size_t)sizes[size].inputs[input].rank);
    }
    strncat(text, " and was given ", sizeof text - strlen(text) - 1);
    add_shape(text, sizeof text, dims, rank);
    strncat(text, "; export it for this batch size, too (--batch)", sizeof text - strlen(text) - 1);
    return CREATE_STATUS(api)(FAILED, text);
}

static opaque *dimensions(const Api *api, const opaque *shape, int64_t *dims, size_t *rank) {
    opaque *wrong = COUNT_DIMENSIONS(api)(shape, rank);
    if (wrong == NULL && *rank > RANK) return CREATE_STATUS(api)(FAILED, WORDS ": an input has too many axes");
    return wrong != NULL ? wrong : GET_DIMENSIONS(api)(shape, dims, *rank);
}

#ifndef ON_CUDA
struct sharing {
    const Api *api;
    const opaque *context;
};

static const char *in_parallel(void *where, piece of, size_t count, void *user) {
    const struct sharing *sharing = where;
    opaque *wrong = PARALLEL_FOR(sharing->api)(sharing->context, of, count, 0, user);
    if (wrong == NULL) return NULL;
    RELEASE_STATUS(sharing->api)(wrong);
    return WORDS ": ONNX Runtime's threads did not take it";
}
#endif

static opaque *compute(void *kernel, opaque *context) {
    const Api *api = kernel;
    const void *inputs[INPUTS];
    void *output;
    opaque *wrong, *value, *shape;
    int size = -1;
    for (int i = 0; i < INPUTS; ++i) {
        const opaque *given;
        if ((wrong = GET_INPUT(api)(context, (size_t)i, &given)) != NULL) return wrong;
        if ((wrong = GET_DATA(api)((opaque *)(uintptr_t)given, (void **)(uintptr_t)&inputs[i])) != NULL) return wrong;
        if (sizes[0].inputs[i].rank < 0) continue; /* a weight, which the model brings along */
        int64_t dims[RANK];
        size_t rank;
        if ((wrong = GET_SHAPE(api)(given, &shape)) != NULL) return wrong;
        wrong = dimensions(api, shape, dims, &rank);
        RELEASE_SHAPE(api)(shape);
        if (wrong != NULL) return wrong;
        int found = size;
        for (int k = 0; size < 0 && found < 0 && k < SIZES; ++k)
            if (is_shape(&sizes[k].inputs[i], dims, rank)) found = k;
        if (found < 0 || !is_shape(&sizes[found].inputs[i], dims, rank)) return unknown_size(api, i, dims, rank);
        size = found;
    }
    const struct shape *of_output = &sizes[size].output;
    if ((wrong = GET_OUTPUT(api)(context, 0, of_output->dims, (size_t)of_output->rank, &value)) != NULL) return wrong;
    if ((wrong = GET_DATA(api)(value, &output)) != NULL) return wrong;
#ifdef ON_CUDA
    void *stream;
    if ((wrong = GET_STREAM(api)(context, &stream)) != NULL) return wrong;
    const char *said = core_run(size, inputs, output, stream);
#else
    struct sharing sharing = {api, context};
    const char *said = core_run(size, inputs, output, in_parallel, &sharing);
#endif
    return said == NULL ? NULL : CREATE_STATUS(api)(FAILED, said);
}

/* The shape of the output, where those of the inputs are known when the session is made. */
static opaque *infer(const struct custom_op *op, opaque *context) {
    (void)op;
    const Api *api = api_of_session;
    for (int size = 0; size < SIZES; ++size) {
        int fits = 1;
        for (int i = 0; i < INPUTS && fits; ++i) {
            if (sizes[size].inputs[i].rank < 0) continue;
            opaque *shape, *wrong;
            int64_t dims[RANK];
            size_t rank;
            if ((wrong = INFER_INPUT(api)(context, (size_t)i, &shape)) != NULL) return wrong;
            if ((wrong = dimensions(api, shape, dims, &rank)) != NULL) return wrong;
            fits = is_shape(&sizes[size].inputs[i], dims, rank);
        }
        if (!fits) continue;
        opaque *shape, *wrong = CREATE_SHAPE(api)(&shape);
        if (wrong != NULL) return wrong;
        if ((wrong = SET_TYPE(api)(shape, OUTPUT_TYPE)) == NULL &&
            (wrong = SET_DIMENSIONS(api)(shape, sizes[size].output.dims, (size_t)sizes[size].output.rank)) == NULL)
            wrong = INFER_OUTPUT(api)(context, 0, shape);
        RELEASE_SHAPE(api)(shape);
        return wrong;
    }
    return NULL;
}

static const char *provider(const struct custom_op *op) {
    (void)op;
#ifdef ON_CUDA
    return "CUDAExecutionProvider";
#else
    return NULL; /* that of the CPU */
#endif
}

static const struct custom_op operator = {
    API_VERSION, NULL, op_name, provider, type_of_input, count_of_inputs, type_of_output, one, NULL, destroy,
    zero_of, zero_of, zero_of, zero, zero, zero, zero, create, compute, infer, version_one, any_version,
};

EXPORTED opaque *RegisterCustomOps(opaque *options, const ApiBase *base) {
    const Api *api = base->get(API_VERSION);
    opaque *domain, *wrong;
    if (api == NULL) {
        const Api *first = base->get(API_FIRST);
        char text[400];
        snprintf(text, sizeof text, WORDS ": it needs ONNX Runtime 1.%d or newer, and this is %s", API_VERSION,
                 base->version());
        return first == NULL ? NULL : CREATE_STATUS(first)(FAILED, text);
    }
    api_of_session = api;
    if ((wrong = CREATE_DOMAIN(api)(DOMAIN, &domain)) != NULL) return wrong;
    if ((wrong = DOMAIN_ADD(api)(domain, &operator)) != NULL) return wrong;
    return ADD_DOMAIN(api)(options, domain);
}
