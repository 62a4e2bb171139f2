/* Arrays as files: .npy, and raw elements. */
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

/* Head of the answer's .npy into `head`, which has room for 1024 bytes; 0 bytes for a type that numpy does not have. */
static size_t write_npy_head(unsigned char *head, const sardonyx_port *port, const array *answer) {
    const char *type = description_of(port->type);
    char *text = (char *)head + 10;
    if (type == NULL) return 0;
    int size = snprintf(text, 512, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int32_t i = 0; i < port->rank && size < 900; i++)
        size += snprintf(text + size, 1000 - (size_t)size, "%lld,", (long long)answer->shape[i]);
    size += snprintf(text + size, 1000 - (size_t)size, "), }");
    while ((size + 11) % 64 != 0) text[size++] = ' ';
    text[size++] = '\n';
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (unsigned char)(size % 256);
    head[9] = (unsigned char)(size / 256);
    return (size_t)size + 10;
}

static void write_array(const char *path, const sardonyx_port *port, const array *answer) {
    unsigned char head[1024];
    const size_t size = write_npy_head(head, port, answer);
    FILE *file = fopen(path, "wb");
    if (file == NULL) end("cannot be written", path);
    fwrite(head, 1, size, file);
    fwrite(answer->data, 1, (size_t)answer->bytes, file);
    if (ferror(file) | (fclose(file) != 0)) end("cannot be written", path);
}
