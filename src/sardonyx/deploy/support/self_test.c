/* ---- the self-test: weights and code as they were built, and the answers to one question ---- */

/* Filled in when the program was linked: where `sum` stands in its file, and the sum of the file without it. */
__attribute__((used, aligned(8))) static const volatile struct {
    char mark[16];
    uint64_t at, sum;
} own_file = {"SARDONYX-OWNSUM", 0, 0};

/* What a word adds to a sum that every bit of the bytes changes. */
static uint64_t term_of(const unsigned char *bytes, int64_t at) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word |= (uint64_t)bytes[i] << (8 * i);
    return (word ^ (word >> 29)) * (2 * ((uint64_t)at / 8) + 1);
}

static int weights_are_whole(void) {
    uint64_t total = 0;
    for (int64_t at = SX_WEIGHTS_BEGIN; at < SX_WEIGHTS_BYTES; at += 8) total += term_of(model_weights + at, at);
    return total == SX_WEIGHTS_SUM;
}

static int file_is_whole(void) {
    unsigned char piece[4096];
    uint64_t total = 0;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (file == NULL) return 0;
    size_t got;
    for (int64_t at = 0; (got = fread(piece, 1, sizeof piece, file)) > 0; at += (int64_t)got) {
        memset(piece + got, 0, sizeof piece - got);
        for (int64_t i = 0; i < (int64_t)got; i += 8)
            if ((uint64_t)(at + i) != own_file.at) total += term_of(piece + i, at + i);
    }
    fclose(file);
    return total == own_file.sum;
}

static double half_value(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    double value = exponent == 0 ? (bits & 1023) / 1024.0 : 1 + (bits & 1023) / 1024.0;
    if (exponent == 31) value = (bits & 1023) ? strtod("nan", NULL) : strtod("inf", NULL);
    for (int i = exponent == 0 ? 1 : exponent; i < 15; i++) value /= 2;
    for (int i = 15; i < exponent && exponent < 31; i++) value *= 2;
    return bits & 0x8000 ? -value : value;
}

static double value_at(const char *type, const void *data, int64_t i) {
    if (strcmp(type, "float64") == 0) return ((const double *)data)[i];
    if (strcmp(type, "float16") == 0) return half_value(((const uint16_t *)data)[i]);
    if (strcmp(type, "bfloat16") == 0) {
        const uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    return ((const float *)data)[i];
}

static int is_near(const sardonyx_port *port, const array *answer, const unsigned char *expected, double rtol, double of_largest) {
    const int64_t count = answer->bytes / port->element_bytes;
    double largest = 0;
    if (rtol == 0) return memcmp(answer->data, expected, (size_t)answer->bytes) == 0;
    if (port->element_bytes == 1) { /* floats of 8 bits and less: the same, or neighbours */
        for (int64_t i = 0; i < count; i++) {
            const int apart = ((const unsigned char *)answer->data)[i] - expected[i];
            if (apart > 1 || apart < -1) return 0;
        }
        return 1;
    }
    for (int64_t i = 0; i < count; i++) {
        const double right = value_at(port->type, expected, i), size = right < 0 ? -right : right;
        if (size > largest && size < 1e300) largest = size;
    }
    for (int64_t i = 0; i < count; i++) {
        const double found = value_at(port->type, answer->data, i), right = value_at(port->type, expected, i);
        const double apart = found > right ? found - right : right - found;
        const int alike = found == right || (found != found && right != right);
        if (!alike && !(apart <= rtol * (right < 0 ? -right : right) + of_largest * largest)) return 0;
    }
    return 1;
}

static int self_test(void) {
    array fed[MODEL_INPUTS + 1] = {{0}}, answers[MODEL_OUTPUTS + 1] = {{0}};
    if (!weights_are_whole()) {
        puts("self-test: FAILED: the weights are damaged");
        return 1;
    }
    if (!file_is_whole()) {
        puts("self-test: FAILED: the program's file is damaged");
        return 1;
    }
    for (int32_t i = 0; i < MODEL_INPUTS; i++) {
        fed[i].data = (void *)(uintptr_t)(model_selftest + test_offsets[i]);
        fed[i].bytes = test_bytes[i];
    }
    run(fed, test_dims, answers, 1);
    for (int32_t i = 0; i < MODEL_OUTPUTS; i++) {
        const unsigned char *expected = model_selftest + test_offsets[MODEL_INPUTS + i];
        if (answers[i].bytes != test_bytes[MODEL_INPUTS + i] ||
            !is_near(model_output(i), &answers[i], expected, test_tolerances[i][0], test_tolerances[i][1])) {
            printf("self-test: FAILED: output %s differs\n", model_output(i)->name);
            return 1;
        }
    }
    puts("self-test: ok");
    return 0;
}
