/* All that a model asks of a C library. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    unsigned char *at = to;
    const unsigned char *source = from;
    while (bytes-- > 0) *at++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    unsigned char *at = to;
    while (bytes-- > 0) *at++ = (unsigned char)value;
    return to;
}
