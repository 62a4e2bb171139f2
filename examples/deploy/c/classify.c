/* Says which digits a file of images shows: 64 numbers (float32) an image, 8 rows of 8.
 *
 * The program owns all memory: it asks how much the model needs for that many images, takes one block, and the model
 * allocates nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { PIXELS = 64, CLASSES = 10 };

static int fail(const char *what) {
    fprintf(stderr, "classify: %s\n", what);
    return 1;
}

static int64_t read_images(const char *path, float **images) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    *images = malloc((size_t)bytes + 1);
    const int complete = *images != NULL && fread(*images, 1, (size_t)bytes, file) == (size_t)bytes;
    fclose(file);
    return complete && bytes % (PIXELS * (long)sizeof(float)) == 0 ? bytes / (PIXELS * (long)sizeof(float)) : -1;
}

static int largest(const float *logits) {
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

int main(int count, char **arguments) {
    float *images = NULL;
    const int64_t batch = count == 2 ? read_images(arguments[1], &images) : -1;
    if (batch < 0) return fail("give a file of images, 256 bytes each");

    sardonyx_error error;
    sardonyx_options options = {0};
    const int64_t dims[DIGITS_DIMS] = {batch};
    if (digits_memory_needed(dims, &options.memory_bytes, &error)) return fail(error.text);
    options.memory = aligned_alloc(64, (size_t)(options.memory_bytes + 63) / 64 * 64);
    float *logits = malloc(sizeof(float) * CLASSES * (size_t)(batch + 1));
    digits_context *context;
    if (options.memory == NULL || logits == NULL) return fail("there is no memory left");
    if (digits_open(&context, &options, &error)) return fail(error.text);

    const sardonyx_buffer inputs[DIGITS_INPUTS] = {{images, (int64_t)sizeof(float) * PIXELS * batch}};
    const sardonyx_buffer outputs[DIGITS_OUTPUTS] = {{logits, (int64_t)sizeof(float) * CLASSES * batch}};
    if (digits_run(context, dims, inputs, outputs, &error)) return fail(error.text);
    for (int64_t i = 0; i < batch; i++) printf("%d\n", largest(logits + CLASSES * i));

    digits_close(context);
    free(options.memory);
    free(logits);
    free(images);
    return 0;
}
