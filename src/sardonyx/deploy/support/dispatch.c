/* ---- which of the levels this CPU runs ---- */

static void ask_cpu(uint32_t leaf, uint32_t part, uint32_t *answer) {
    __asm__ volatile("cpuid" : "=a"(answer[0]), "=b"(answer[1]), "=c"(answer[2]), "=d"(answer[3]) : "a"(leaf), "c"(part));
}

/* The registers that the system keeps for a thread. */
static uint32_t kept_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Linux hands out tile registers to a process that asks. */
static int tiles_granted(void) {
    int64_t result = 158; /* arch_prctl */
    __asm__ volatile("syscall" : "+a"(result) : "D"((int64_t)0x1023), "S"((int64_t)18) : "rcx", "r11", "memory");
    return result == 0;
}

static int has(uint32_t word, uint32_t bits) {
    return (word & bits) == bits;
}

/* 2, 3 and 4 are the levels x86-64-v2 to v4 of the psABI; 5 has AMX beside; 1 is every other CPU. */
static int32_t level_of_cpu(void) {
    uint32_t most[4], one[4], seven[4] = {0}, more[4] = {0}, extended[4];
    ask_cpu(0, 0, most);
    ask_cpu(1, 0, one);
    ask_cpu(0x80000001, 0, extended);
    if (most[0] >= 7) ask_cpu(7, 0, seven);
    if (most[0] >= 7 && seven[0] >= 1) ask_cpu(7, 1, more);
    /* SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF */
    if (!has(one[2], 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23) || !has(extended[2], 1)) return 1;
    /* FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2 */
    if (!has(one[2], 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29) || !has(extended[2], 1u << 5)) return 2;
    if (!has(seven[1], 1u << 3 | 1u << 5 | 1u << 8) || !has(kept_registers(), 0x6)) return 2;
    /* AVX-512: F, DQ, CD, BW, VL */
    if (!has(seven[1], 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) || !has(kept_registers(), 0xe6)) return 3;
    /* VNNI; AMX: BF16, TILE, INT8; BF16 */
    if (!has(seven[2], 1u << 11) || !has(seven[3], 1u << 22 | 1u << 24 | 1u << 25) || !has(more[0], 1u << 5)) return 4;
    return has(kept_registers(), 0x600e6) && tiles_granted() ? 5 : 4;
}

enum { LEVELS = sizeof levels / sizeof levels[0], NONE = -1, UNKNOWN_NAME = -2 };

/* The highest level that the CPU has, or that the environment names, if that is lower. */
static int32_t find_level(void) {
    const char *wanted = getenv("SARDONYX_CPU");
    const int32_t own = level_of_cpu();
    int32_t most = LEVELS - 1;
    if (wanted != 0 && wanted[0] != 0) {
        for (most = LEVELS - 1; most >= 0; most--)
            if (strcmp(levels[most].name, wanted) == 0) break;
        if (most < 0) return UNKNOWN_NAME;
    }
    while (most >= 0 && levels[most].number > own) most--;
    return most; /* NONE where the CPU has not even the lowest */
}

/* One for all contexts of a process: it is found out when the first function is called. */
static int32_t level(void) {
    static int32_t found = LEVELS; /* not asked yet */
    int32_t now = SX_LOAD(&found);
    if (now == LEVELS) {
        now = find_level();
        SX_STORE(&found, now);
    }
    return now;
}

int32_t model_open(model_context **context, const sardonyx_options *options, sardonyx_error *error) {
    if (level() == NONE)
        return fail(error, SARDONYX_BAD_CPU, "this CPU has less than {where}, the least that the code was built for",
                    levels[0].name, 0, 0);
    if (level() == UNKNOWN_NAME)
        return fail(error, SARDONYX_BAD_CPU, "SARDONYX_CPU names no level of this library; the lowest is {where}",
                    levels[0].name, 0, 0);
    return open_at_level(context, options, error);
}
