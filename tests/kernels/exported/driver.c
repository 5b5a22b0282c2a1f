/* A CUDA driver that runs nothing: it writes down what it is asked, one line each, into the file TOLD. What a
   kernel is given is written as so many pointers (POINTERS) and so many bytes behind them (NBYTES). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *told(void) {
    static FILE *file;
    if (file == NULL) file = fopen(getenv("TOLD"), "w");
    return file;
}

#define TELL(...) (fprintf(told(), __VA_ARGS__), fflush(told()), 0)

static unsigned long long memory = 0x900000;
static void *context;

int cuInit(unsigned flags) { return TELL("init %u\n", flags); }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDevicePrimaryCtxRetain(void **made, int device) { *made = (void *)0x77; return TELL("context of %d\n", device); }
int cuCtxGetCurrent(void **current) { *current = context; return 0; }
int cuCtxSetCurrent(void *made) { context = made; return 0; }
int cuModuleLoadData(void **module, const void *data) {
    const int ptx = strstr(data, ".version") != NULL;
    if (!ptx && getenv("OTHER_ARCHITECTURE") != NULL) return 209;
    *module = (void *)(ptx ? 0x20 : 0x10);
    return TELL("load %s\n", ptx ? "ptx" : "cubin");
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = strdup(name);
    return 0;
}
int cuModuleGetGlobal_v2(unsigned long long *at, size_t *nbytes, void *module, const char *name) {
    (void)module;
    *at = 0x5000;
    *nbytes = 0;
    return TELL("global %s\n", name);
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    return TELL("attribute %s %d %d\n", (char *)function, attribute, value);
}
int cuMemAlloc_v2(unsigned long long *at, size_t nbytes) {
    *at = memory;
    memory += 0x100000;
    return TELL("alloc %zu\n", nbytes);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t nbytes, void *stream) {
    return TELL("copy %llx %llx %zu %p\n", to, from, nbytes, stream);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    (void)extra;
    if (getenv("NO_LAUNCH") != NULL) return 719;
    TELL("launch %s %u,%u,%u %u,%u,%u %u %p", (char *)function, gx, gy, gz, bx, by, bz, shared, stream);
    const int pointers = atoi(getenv("POINTERS")), nbytes = atoi(getenv("NBYTES"));
    for (int i = 0; i < pointers; ++i) TELL(" %llx", *(unsigned long long *)arguments[i]);
    TELL(" ");
    for (int i = 0; i < nbytes; ++i) TELL("%02x", ((unsigned char *)arguments[pointers])[i]);
    return TELL("\n");
}
int cuGetErrorString(int status, const char **words) {
    *words = status == 719 ? "unspecified launch failure" : "no kernel image";
    return 0;
}
