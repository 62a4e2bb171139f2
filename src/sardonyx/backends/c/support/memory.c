/* Memory for buffers whose size only data decides.
 *
 *     run->memory -> [next | 64 bytes][buffer ...]  ->  [next | 64 bytes][buffer ...]  ->  NULL
 */
#define _GNU_SOURCE
#include "threads.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

struct block {
    _Alignas(ALIGNMENT) struct block *next;
};

/* The first error of a run is kept, as in sx_fail. */
static void *refuse(sx_run *run, int32_t error, int64_t bytes, int64_t limit) {
    int32_t none = SX_OK;
    if (__atomic_compare_exchange_n(&run->error, &none, error, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        run->a = bytes;
        run->b = limit;
    }
    return NULL;
}

void *sx_allocate(sx_run *run, int64_t bytes) {
    /* A negative size is a product that left the range of int64: no machine has so much. */
    if (bytes < 0 || bytes > INT64_MAX - 2 * ALIGNMENT)
        return refuse(run, SX_NO_MEMORY, bytes, INT64_MAX);

    int64_t left = __atomic_load_n(&run->budget, __ATOMIC_RELAXED);
    do {
        if (left < 0)
            break;
        if (bytes > left)
            return refuse(run, SX_BUDGET, bytes, left);
    } while (!__atomic_compare_exchange_n(&run->budget, &left, left - bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));

    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, sizeof(struct block) + (size_t)bytes) != 0)
        return refuse(run, SX_NO_MEMORY, bytes, left);
    struct block *block = memory;
    void *head = __atomic_load_n(&run->memory, __ATOMIC_RELAXED);
    do {
        block->next = head;
    } while (!__atomic_compare_exchange_n(&run->memory, &head, memory, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return block + 1;
}

void sx_release(sx_run *run) {
    struct block *block = __atomic_exchange_n(&run->memory, NULL, __ATOMIC_ACQUIRE);
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}
