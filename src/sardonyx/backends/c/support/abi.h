/* What a compiled model and the process that runs it say to each other.
 *
 * A kernel is one function:  int32_t k_<digest>(sx_run *run, void *const *p, const int64_t *n)
 *     p   its buffers, in the order of its declaration
 *     n   the values of its size symbols
 * It returns SX_OK, or an error code after `sx_fail` has written down what happened.
 */
#ifndef SX_ABI_H
#define SX_ABI_H

#include <stdint.h>
#include <stddef.h>

enum {
    SX_OK = 0,
    SX_CANCELLED = 1,  /* the caller set `stop` */
    SX_DEADLINE = 2,   /* `deadline` has passed */
    SX_BUDGET = 3,     /* a size that only data decides would break the byte budget */
    SX_NO_MEMORY = 4,
    SX_VALUE = 5,      /* a value that has no answer: `reason` says which rule, `a` and `b` the values */
    SX_PAUSED = 6      /* no error: the caller may look after its own affairs, then goes on at `step` */
};

typedef struct sx_run sx_run;
typedef void (*sx_body)(void *arg, int64_t begin, int64_t end);

struct sx_run {
    /* Call body(arg, begin, end) for [0, count) cut into chunks of `grain`; the borders depend on
     * nothing else. Chunks run in any order, on any thread; all are done when it returns. Chunks
     * that have not begun when the run is stopped are skipped. A grain of -4 is one of 4 with the wish
     * to go backward: by that, loops over the same memory turn, where it is more than a cache holds. */
    void (*parallel)(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg);
    /* Memory for a buffer whose size only data decides; NULL after `error` has been set. */
    void *(*allocate)(sx_run *run, int64_t bytes);
    /* Between two steps: SX_OK to go on, SX_PAUSED, or why the run must end. */
    int32_t (*look)(sx_run *run);
    void *pool;         /* of the host; kernels do not look inside */
    void *memory;       /* of the host: what `allocate` handed out */
    int64_t deadline;   /* nanoseconds of CLOCK_MONOTONIC; 0 is none */
    int64_t since;      /* of the host: when `look` was first called since `sx_main` began; 0 is not yet */
    int64_t budget;     /* bytes that `allocate` may still hand out; negative is no bound */
    int32_t threads;    /* how many threads may work on this run */
    int32_t stop;       /* SX_OK, SX_CANCELLED or SX_DEADLINE; written from any thread, read with __atomic_load_n */
    int32_t error;      /* the first error, SX_OK if none */
    int32_t step;       /* which step of the plan failed, or comes next */
    int32_t reason;     /* which check of that step */
    int64_t a, b;       /* the value and the limit, where there are any */
};

/* The arguments of sx_main where a call is made again and again, and each argument costs the caller time. Tensors that differ from
 * call to call come as a list of the host, of objects that hold their addresses: reading them here takes a tenth of what it takes
 * there. */
typedef struct {
    sx_run *run;
    void **t;
    int64_t *n;
    int32_t first, end;
    int32_t count;           /* of those tensors */
    int32_t items, at;       /* where in the list the pointer to its items lies, and in an item the address; in bytes */
    const int32_t *tensors;  /* their numbers */
    char *const *list;       /* where it is written which list it is */
} sx_call;

/* Words that one thread writes while another reads. */
#define SX_LOAD(word) __atomic_load_n(word, __ATOMIC_ACQUIRE)
#define SX_STORE(word, value) __atomic_store_n(word, value, __ATOMIC_RELEASE)

/* The first error of a run is kept; threads of one kernel may fail at the same time. */
static inline int32_t sx_fail(sx_run *run, int32_t reason, int64_t a, int64_t b) {
    int32_t none = SX_OK;
    if (__atomic_compare_exchange_n(&run->error, &none, SX_VALUE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        run->reason = reason;
        run->a = a;
        run->b = b;
    }
    return SX_VALUE;
}

#endif
