/* A model on a microcontroller: one static arena, nothing allocated, answers as the bits of their numbers. */
#include "model.h"

#ifndef BATCH
#define BATCH 1
#endif
enum { MOST = 4096 }; /* numbers of the input, and of the output */

extern void say(const char *text);

static _Alignas(64) unsigned char arena[MODEL_MEMORY];
static float given[MOST], answer[MOST];

static void say_bits(float number) {
    static const char digits[] = "0123456789abcdef";
    union { float number; uint32_t bits; } one = {number};
    char text[10];
    for (int i = 0; i < 8; i++) text[i] = digits[one.bits >> (28 - 4 * i) & 15];
    text[8] = '\n';
    text[9] = 0;
    say(text);
}

static int64_t count_of(const sardonyx_port *port, const int64_t *shape) {
    int64_t count = 1;
    for (int32_t i = 0; i < port->rank; i++) count *= shape[i];
    return count;
}

int main(void) {
    const int64_t dims[MODEL_DIMS + 1] = {BATCH};
    const sardonyx_options options = {.memory = arena, .memory_bytes = sizeof arena};
    int64_t shape[8];
    sardonyx_error error;
    model_context *context;
    int32_t code = model_open(&context, &options, &error);
    if (code == SARDONYX_OK) code = model_input_shape(0, dims, shape, &error);
    const int64_t taken = code == SARDONYX_OK ? count_of(model_input(0), shape) : 0;
    if (code == SARDONYX_OK) code = model_output_shape(0, dims, shape, &error);
    const int64_t made = code == SARDONYX_OK ? count_of(model_output(0), shape) : 0;
    if (code == SARDONYX_OK && taken <= MOST && made <= MOST) {
        for (int32_t i = 0; i < taken; i++) given[i] = (float)(i % 23) / 16 - 0.5f;
        const sardonyx_buffer input = {given, taken * 4}, output = {answer, made * 4};
        code = model_run(context, dims, &input, &output, &error);
    }
    if (code != SARDONYX_OK) say(error.text);
    for (int32_t i = 0; code == SARDONYX_OK && i < made; i++) say_bits(answer[i]);
    return code;
}
