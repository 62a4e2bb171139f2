/* Numbers below 2^-126 are 0 from here to the end of the block, in this thread and in those that help it: x86
 * takes a hundred cycles for each of them otherwise. Other processors have no such cost, and keep them.
 */
#ifndef SX_DENORMALS_H
#define SX_DENORMALS_H

#include <stdint.h>

#if defined(__SSE2__) && defined(__GNUC__)
static inline uint32_t sx_flush(void) {
    const uint32_t mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040u); /* MXCSR: flush to zero, denormals are zero */
    return mode;
}

static inline void sx_keep(const uint32_t *mode) {
    __builtin_ia32_ldmxcsr(*mode);
}

#define SX_FLUSHED __attribute__((cleanup(sx_keep), unused)) const uint32_t sx_mode = sx_flush();
#else
#define SX_FLUSHED
#endif

#endif
