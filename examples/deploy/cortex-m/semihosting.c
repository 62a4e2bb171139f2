/* Text out and an end, through the debugger or emulator that the board hangs on; a product has its own. */
#include <stdint.h>

static int32_t ask(int32_t operation, const void *argument) {
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void say(const char *text) {
    ask(0x04, text);
}

_Noreturn void leave(int code) {
    const uint32_t stopped[2] = {0x20026, (uint32_t)code};
    ask(0x20, stopped);
    for (;;) {}
}
