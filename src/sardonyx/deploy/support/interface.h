#ifndef SARDONYX_INTERFACE
#define SARDONYX_INTERFACE

#include <stddef.h>
#include <stdint.h>

/* What functions return; 0 is success. */
enum {
    SARDONYX_OK = 0,
    SARDONYX_STOPPED = 1,      /* by a call of stop from another thread */
    SARDONYX_NO_MEMORY = 4,    /* the memory given is too small, or there is none */
    SARDONYX_BAD_VALUE = 5,    /* an input's value for which the model has no answer */
    SARDONYX_BAD_SHAPE = 16,   /* sizes that the model cannot have, or buffers of other sizes */
    SARDONYX_BAD_ARGUMENT = 17,
    SARDONYX_BAD_WEIGHTS = 18, /* not the weights of this model */
    SARDONYX_BAD_CPU = 19      /* not even the lowest level of an artifact that has several */
};

/* What went wrong, for a person. Wherever one is asked for, NULL will do. */
typedef struct {
    int32_t code;
    char text[252];
} sardonyx_error;

/* Bytes of the caller's: a tensor's elements in C order, without gaps. */
typedef struct {
    void *data;
    int64_t bytes;
} sardonyx_buffer;

/* An input or an output. */
typedef struct {
    const char *name;
    const char *type;         /* as numpy calls it: "float32", "int64", "bool", "bfloat16" */
    const char *const *shape; /* `rank` sizes as text: "128", "batch", "2*seq + 1" */
    int32_t rank;
    int32_t number;           /* of the type in the ONNX standard: 1 is float32 */
    int32_t element_bytes;
} sardonyx_port;

/* How a context is opened; all zeros is what most want. */
typedef struct {
    void *user;                                           /* the first argument of the hooks */
    void *(*allocate)(void *user, size_t bytes);          /* aligned to 64 bytes, or NULL */
    void (*release)(void *user, void *memory, size_t bytes);
    /* Call chunk(job, i) once for every i in [0, count), on any threads; all are done when it returns. */
    void (*parallel)(void *user, int64_t count, void (*chunk)(void *job, int64_t i), void *job);
    void *memory;              /* the context's only memory, aligned to 64 bytes: then nothing is allocated, ever */
    int64_t memory_bytes;
    const void *weights;       /* where they are not inside the artifact: aligned to 64 bytes, read only */
    int64_t weights_bytes;
    int32_t threads;           /* of the context's own, the caller among them; 0 is 1 */
} sardonyx_options;

#endif
