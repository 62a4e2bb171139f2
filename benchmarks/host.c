/* A program around a model called `net`: a self-test's file in, all answers out, one after the other.
 *
 *     host SELFTEST ANSWERS [WEIGHTS|-] [DIM ...]                    once
 *     host SELFTEST ANSWERS [WEIGHTS|-] [DIM ...]  with ROUNDS=n     n times: nanoseconds of each run are printed
 *
 * With ROUNDS, the first number is opening the model and its first run; with THREADS, so many threads work.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void check(int32_t code, const sardonyx_error *error) {
    if (code == SARDONYX_OK) return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

/* A file as the system maps it; pages come when they are read. */
static void *mapped(const char *path, int64_t *bytes) {
    struct stat found;
    const int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &found) != 0) {
        perror(path);
        exit(1);
    }
    *bytes = found.st_size;
    void *memory = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int64_t bytes_of(const sardonyx_port *port, const int64_t *shape) {
    int64_t bytes = port->element_bytes;
    for (int32_t axis = 0; axis < port->rank; axis++) bytes *= shape[axis];
    return bytes;
}

static int64_t number_of(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text == NULL ? otherwise : atoll(text);
}

int main(int count, char **arguments) {
    int64_t size, dims[NET_DIMS + 1] = {0}, shape[64], at = 0;
    sardonyx_buffer inputs[NET_INPUTS + 1], outputs[NET_OUTPUTS + 1];
    sardonyx_options options;
    sardonyx_error error;
    net_context *context;
    const int64_t rounds = number_of("ROUNDS", 0);
    if (count < 4) return 2;
    char *test = mapped(arguments[1], &size);
    for (int i = 0; i < NET_DIMS && i + 4 < count; i++) dims[i] = atoll(arguments[i + 4]);
    for (int32_t i = 0; i < NET_INPUTS; i++) {
        check(net_input_shape(i, dims, shape, &error), &error);
        inputs[i].data = test + at;
        inputs[i].bytes = bytes_of(net_input(i), shape);
        at += (inputs[i].bytes + 63) / 64 * 64;
    }
    for (int32_t i = 0; i < NET_OUTPUTS; i++) {
        check(net_output_shape(i, dims, shape, &error), &error);
        outputs[i].bytes = bytes_of(net_output(i), shape);
        outputs[i].data = malloc((size_t)outputs[i].bytes + 64);
    }
    const int64_t begin = now();
    memset(&options, 0, sizeof options);
    options.threads = (int32_t)number_of("THREADS", 1);
    if (strcmp(arguments[3], "-") != 0) options.weights = mapped(arguments[3], &options.weights_bytes);
    check(net_open(&context, &options, &error), &error);
    check(net_run(context, dims, inputs, outputs, &error), &error);
    if (rounds > 0) printf("%lld\n", (long long)(now() - begin));
    for (int64_t round = 0; round < rounds; round++) {
        const int64_t start = now();
        check(net_run(context, dims, inputs, outputs, &error), &error);
        printf("%lld\n", (long long)(now() - start));
    }
    net_close(context);
    FILE *file = fopen(arguments[2], "wb");
    if (file == NULL) return 1;
    for (int32_t i = 0; i < NET_OUTPUTS; i++) fwrite(outputs[i].data, 1, (size_t)outputs[i].bytes, file);
    return fclose(file) != 0;
}
