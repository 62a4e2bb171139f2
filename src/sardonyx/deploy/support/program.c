/* A program around a model: arrays in from .npy files or raw bytes, answers out to .npy files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef struct {
    void *data;
    int64_t bytes;
    int64_t *shape; /* NULL where the file does not say */
    int32_t rank;
} array;

static _Noreturn void end(const char *what, const char *where) {
    fprintf(stderr, "model: %s%s%s\n", what, where[0] ? ": " : "", where);
    exit(2);
}

static void *taken(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (memory == NULL) end("there is no memory left", "");
    return memory;
}

static array read_file(const char *path) {
    array found = {0};
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) end("cannot be opened", path);
    size_t room = 1 << 16, size = 0, got;
    char *data = taken(room);
    while ((got = fread(data + size, 1, room - size, file)) > 0) {
        size += got;
        if (size == room && (data = realloc(data, room *= 2)) == NULL) end("there is no memory left", "");
    }
    if (ferror(file)) end("cannot be read", path);
    if (file != stdin) fclose(file);
    found.data = data;
    found.bytes = (int64_t)size;
    return found;
}

/* ---- .npy ---- */

static const char *const descriptions[][2] = {
    {"float32", "<f4"}, {"float64", "<f8"}, {"float16", "<f2"}, {"int64", "<i8"},  {"int32", "<i4"}, {"int16", "<i2"},
    {"int8", "|i1"},    {"uint64", "<u8"},  {"uint32", "<u4"},  {"uint16", "<u2"}, {"uint8", "|u1"}, {"bool", "|b1"},
};

static const char *description_of(const char *type) {
    for (size_t i = 0; i < sizeof descriptions / sizeof descriptions[0]; i++)
        if (strcmp(descriptions[i][0], type) == 0) return descriptions[i][1];
    return NULL;
}

static int is_npy(const array *file) {
    return file->bytes >= 10 && memcmp(file->data, "\x93NUMPY", 6) == 0;
}

/* What follows `key` in the head of an array, as 'descr': '<f4'. */
static const char *value_of(const char *head, const char *key) {
    const char *at = strstr(head, key);
    return at == NULL ? "" : at + strlen(key);
}

static void open_npy(array *file, const sardonyx_port *port, const char *path) {
    const unsigned char *bytes = file->data;
    const int64_t begin = bytes[6] == 1 ? 10 : 12;
    int64_t length = bytes[8] + 256 * bytes[9];
    if (begin == 12) length += ((int64_t)bytes[10] << 16) + ((int64_t)bytes[11] << 24);
    if (begin + length > file->bytes) end("ends within its head", path);
    char *head = taken((size_t)length + 1);
    memcpy(head, bytes + begin, (size_t)length);
    head[length] = 0;
    const char *type = description_of(port->type), *said = value_of(head, "'descr': '");
    if (type == NULL || (strncmp(said, type, strlen(type)) != 0 && !(said[0] == '=' && strncmp(said + 1, type + 1, 2) == 0))) {
        fprintf(stderr, "model: %s: %s was expected for the input %s\n", path, port->type, port->name);
        exit(2);
    }
    if (strncmp(value_of(head, "'fortran_order': "), "False", 5) != 0) end("is not in C order: save numpy.ascontiguousarray of it", path);
    const char *at = value_of(head, "'shape': (");
    file->shape = taken(sizeof(int64_t) * 64);
    while (file->rank < 64 && *at >= '0' && *at <= '9') {
        char *after;
        file->shape[file->rank++] = strtoll(at, &after, 10);
        for (at = after; *at == ',' || *at == ' '; at++) {}
    }
    file->data = (char *)file->data + begin + length;
    file->bytes -= begin + length;
    free(head);
}

static void write_npy(const char *path, const sardonyx_port *port, const array *answer) {
    char head[1024];
    const char *type = description_of(port->type);
    FILE *file = fopen(path, "wb");
    if (file == NULL) end("cannot be written", path);
    if (type != NULL) {
        int size = snprintf(head, 512, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
        for (int32_t i = 0; i < port->rank && size < 900; i++)
            size += snprintf(head + size, sizeof head - (size_t)size, "%lld,", (long long)answer->shape[i]);
        size += snprintf(head + size, sizeof head - (size_t)size, "), }");
        while ((size + 11) % 64 != 0) head[size++] = ' ';
        head[size++] = '\n';
        const unsigned char before[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(size % 256), (unsigned char)(size / 256)};
        fwrite(before, 1, sizeof before, file);
        fwrite(head, 1, (size_t)size, file);
    }
    fwrite(answer->data, 1, (size_t)answer->bytes, file);
    if (fclose(file) != 0) end("cannot be written", path);
}

/* ---- the program ---- */

static void check(int32_t code, const sardonyx_error *error) {
    if (code != SARDONYX_OK) end(error->text, "");
}

static void show_port(const char *word, const sardonyx_port *port) {
    printf("%s %s: %s[", word, port->name, port->type);
    for (int32_t i = 0; i < port->rank; i++) printf("%s%s", i ? ", " : "", port->shape[i]);
    puts("]");
}

static int help(void) {
    puts("usage: model [NAME=]INPUT.npy ... [-o FOLDER] [--dim NAME=SIZE] [--threads N] [--self-test] [--list]\n"
         "Inputs in the model's order, or by name; files that are no .npy are taken as raw elements, `-` is standard input.\n"
         "Each output is written to FOLDER/NAME.npy.");
    return 0;
}

static int list(void) {
    for (int32_t i = 0; i < MODEL_INPUTS; i++) show_port("input", model_input(i));
    for (int32_t i = 0; i < MODEL_OUTPUTS; i++) show_port("output", model_output(i));
    return 0;
}

static int32_t find_dim(const char *text, size_t length) {
    for (int32_t i = 0; i < MODEL_DIMS; i++)
        if (strlen(model_dim(i)) == length && strncmp(model_dim(i), text, length) == 0) return i;
    end("no dimension has this name", text);
}

/* The input that an argument is for: by its name before `=`, else the next one. */
static int32_t find_input(const char **argument, int32_t next) {
    const char *equals = strchr(*argument, '=');
    for (int32_t i = 0; equals != NULL && i < MODEL_INPUTS; i++) {
        const char *name = model_input(i)->name;
        if (strlen(name) == (size_t)(equals - *argument) && strncmp(name, *argument, strlen(name)) == 0) {
            *argument = equals + 1;
            return i;
        }
    }
    if (next >= MODEL_INPUTS) end("there are more files than inputs", *argument);
    return next;
}

/* Run once on `fed`; `answers` get memory here. */
static void run(array *fed, const int64_t *dims, array *answers, int32_t threads) {
    sardonyx_buffer inputs[MODEL_INPUTS + 1], outputs[MODEL_OUTPUTS + 1];
    sardonyx_options options;
    sardonyx_error error;
    model_context *context;
    memset(&options, 0, sizeof options);
    options.threads = threads;
    for (int32_t i = 0; i < MODEL_INPUTS; i++) {
        /* What a file holds behind its head need not be aligned. */
        inputs[i].data = taken((size_t)fed[i].bytes);
        inputs[i].bytes = fed[i].bytes;
        memcpy(inputs[i].data, fed[i].data, (size_t)fed[i].bytes);
    }
    for (int32_t i = 0; i < MODEL_OUTPUTS; i++) {
        const sardonyx_port *port = model_output(i);
        answers[i].shape = taken(sizeof(int64_t) * (size_t)(port->rank + 1));
        check(model_output_shape(i, dims, answers[i].shape, &error), &error);
        answers[i].bytes = port->element_bytes;
        for (int32_t axis = 0; axis < port->rank; axis++) answers[i].bytes *= answers[i].shape[axis];
        answers[i].data = taken((size_t)answers[i].bytes);
        outputs[i].data = answers[i].data;
        outputs[i].bytes = answers[i].bytes;
    }
    check(model_open(&context, &options, &error), &error);
    check(model_run(context, dims, inputs, outputs, &error), &error);
    model_close(context);
    for (int32_t i = 0; i < MODEL_INPUTS; i++) free(inputs[i].data);
}

{self_test}
int main(int count, char **arguments) {
    array fed[MODEL_INPUTS + 1] = {{0}}, answers[MODEL_OUTPUTS + 1] = {{0}};
    int64_t dims[MODEL_DIMS + 1];
    const char *folder = ".";
    int32_t threads = 1, next = 0;
    sardonyx_error error;
    for (int32_t i = 0; i < MODEL_DIMS; i++) dims[i] = -1;
    if (count < 2 && MODEL_INPUTS > 0) return help();
    for (int i = 1; i < count; i++) {
        const char *one = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(one, "--help") == 0 || strcmp(one, "-h") == 0) return help();
        if (strcmp(one, "--list") == 0) return list();
        if (strcmp(one, "--self-test") == 0) return self_test();
        if (one[0] == '-' && one[1] != 0) {
            if (value == NULL) end("an argument is missing behind it", one);
            if (strcmp(one, "-o") == 0) folder = value;
            else if (strcmp(one, "--threads") == 0) threads = atoi(value);
            else if (strcmp(one, "--dim") == 0 && strchr(value, '=') != NULL)
                dims[find_dim(value, (size_t)(strchr(value, '=') - value))] = strtoll(strchr(value, '=') + 1, NULL, 10);
            else end("is no option; --help shows all", one);
            i++;
            continue;
        }
        const int32_t input = find_input(&one, next);
        const sardonyx_port *port = model_input(input);
        next = input + 1;
        fed[input] = read_file(one);
        if (!is_npy(&fed[input])) continue;
        open_npy(&fed[input], port, one);
        check(model_bind(input, fed[input].shape, fed[input].rank, dims, &error), &error);
    }
    for (int32_t i = 0; i < MODEL_INPUTS; i++)
        if (fed[i].data == NULL) end("nothing was given for this input", model_input(i)->name);
    for (int32_t i = 0; i < MODEL_DIMS; i++)
        if (dims[i] < 0) end("give this dimension a size with --dim", model_dim(i));
    run(fed, dims, answers, threads);
    for (int32_t i = 0; i < MODEL_OUTPUTS; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.npy", folder, output_files[i]);
        write_npy(path, model_output(i), &answers[i]);
        puts(path);
    }
    return 0;
}
