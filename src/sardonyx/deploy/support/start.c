/* Where a program begins, before its C library is asked to call main. */
extern int __libc_start_main(int (*run)(int, char **, char **), int count, char **arguments, void (*first)(void),
                             void (*last)(void), void (*after)(void), void *stack);
extern int main();

__attribute__((used, visibility("hidden"))) void sx_begin(long *stack, void (*after)(void)) {
    __libc_start_main((int (*)(int, char **, char **))(void *)main, (int)stack[0], (char **)(stack + 1), 0, 0, after, stack);
}

__asm__(".globl _start\n"
        "_start:\n"
#if defined(__x86_64__)
        "xor %ebp, %ebp\n mov %rsp, %rdi\n mov %rdx, %rsi\n and $-16, %rsp\n call sx_begin\n hlt\n"
#elif defined(__aarch64__)
        "mov x29, #0\n mov x30, #0\n mov x1, x0\n mov x0, sp\n bl sx_begin\n brk #0\n"
#else
        "mv a1, a0\n mv a0, sp\n andi sp, sp, -16\n call sx_begin\n ebreak\n"
#endif
);
