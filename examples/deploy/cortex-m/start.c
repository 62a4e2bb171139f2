/* From power-on to main: vectors, the floating-point unit, variables. */
#include <stdint.h>

extern uint32_t data_begin[], data_end[], data_source[], bss_begin[], bss_end[], stack_top[];
extern int main(void);
extern _Noreturn void leave(int code);

_Noreturn void _start(void) {
    volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88;
    *coprocessors |= 0xFu << 20; /* full access to the floating-point unit */
    __asm__ volatile("dsb\n isb");
    for (uint32_t *to = data_begin, *from = data_source; to < data_end;) *to++ = *from++;
    for (uint32_t *to = bss_begin; to < bss_end;) *to++ = 0;
    leave(main());
}

static _Noreturn void fault(void) {
    leave(99);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (const void *)_start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
