/* ---- .npz: a zip of .npy files, none of them compressed ---- */

enum { LOCAL_HEAD = 30, CENTRAL_HEAD = 46, END_HEAD = 22, MOST_COMMENT = 65535 };

typedef struct {
    char name[512];
    array content;
} member;

static uint32_t number_at(const array *file, int64_t at, int bytes) {
    uint32_t number = 0;
    for (int i = 0; i < bytes; i++) number |= (uint32_t)((const unsigned char *)file->data)[at + i] << (8 * i);
    return number;
}

static uint32_t checksum_of_zip(uint32_t sum, const void *data, size_t bytes) {
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++) table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320u : table[i] >> 1;
        }
    sum = ~sum;
    for (size_t i = 0; i < bytes; i++) sum = table[(sum ^ ((const unsigned char *)data)[i]) & 255] ^ sum >> 8;
    return ~sum;
}

static int is_zip(const array *file) {
    return file->bytes >= END_HEAD && (number_at(file, 0, 4) == 0x04034b50u || number_at(file, 0, 4) == 0x06054b50u);
}

/* Where the list of members ends, and what is said about it; -1 where there is none. */
static int64_t end_of_list(const array *file) {
    for (int64_t at = file->bytes - END_HEAD; at >= 0 && at >= file->bytes - END_HEAD - MOST_COMMENT; at--)
        if (number_at(file, at, 4) == 0x06054b50u) return at;
    return -1;
}

static int64_t first_member(const array *file, const char *path) {
    const int64_t last = end_of_list(file);
    if (last < 0) end("is a damaged .npz: it ends too early", path);
    if (number_at(file, last + 16, 4) == 0xffffffffu) end("is larger than 4 GB: give the arrays as .npy files", path);
    return number_at(file, last + 16, 4);
}

static int64_t member_count(const array *file) {
    return number_at(file, end_of_list(file) + 10, 2);
}

/* The member that the list has at `at`; returns where the next one is. */
static int64_t read_member(const array *file, int64_t at, const char *path, member *found) {
    if (at + CENTRAL_HEAD > file->bytes || number_at(file, at, 4) != 0x02014b50u) end("is a damaged .npz: its list is broken", path);
    const int64_t name = number_at(file, at + 28, 2), extra = number_at(file, at + 30, 2), comment = number_at(file, at + 32, 2);
    const int64_t size = number_at(file, at + 24, 4), local = number_at(file, at + 42, 4);
    if (name >= (int64_t)sizeof found->name || at + CENTRAL_HEAD + name > file->bytes) end("is a damaged .npz: a name is too long", path);
    memcpy(found->name, (const char *)file->data + at + CENTRAL_HEAD, (size_t)name);
    found->name[name] = 0;
    if (number_at(file, at + 10, 2) != 0)
        end("is compressed, which this program does not read: write it with numpy.savez, not savez_compressed", found->name);
    if (size == 0xffffffff || local == 0xffffffff) end("is larger than 4 GB: give it as an .npy file", found->name);
    if (local + LOCAL_HEAD > file->bytes) end("is a damaged .npz: an array is missing", path);
    const int64_t begin = local + LOCAL_HEAD + number_at(file, local + 26, 2) + number_at(file, local + 28, 2);
    if (begin + size > file->bytes) end("is a damaged .npz: an array ends too early", path);
    memset(&found->content, 0, sizeof found->content);
    found->content.data = (char *)file->data + begin;
    found->content.bytes = size;
    if (checksum_of_zip(0, found->content.data, (size_t)size) != number_at(file, at + 16, 4))
        end("is damaged: its checksum is another", found->name);
    return at + CENTRAL_HEAD + name + extra + comment;
}

/* ---- writing ---- */

typedef struct {
    FILE *file;
    const char *path;
    unsigned char *list; /* of members, which stands at the end */
    size_t listed;
    int64_t at, count;
} archive;

static void put_numbers(unsigned char *to, const uint32_t *numbers, const char *bytes) {
    for (int i = 0; bytes[i] != 0; i++)
        for (int byte = 0; byte < bytes[i] - '0'; byte++) *to++ = (unsigned char)(numbers[i] >> (8 * byte));
}

static archive open_archive(const char *path) {
    archive made = {fopen(path, "wb"), path, taken(1), 0, 0, 0};
    if (made.file == NULL) end("cannot be written", path);
    return made;
}

static void put_bytes(archive *to, const void *bytes, size_t count) {
    if (fwrite(bytes, 1, count, to->file) != count) end("cannot be written", to->path);
    to->at += (int64_t)count;
}

/* The one date of all members is the first that zip knows: the same answers are the same bytes. */
static void add_array(archive *to, const sardonyx_port *port, const array *answer) {
    enum { STORED = 20, UTF8 = 0x800, DATE = 0x21, UNIX = 0x31e };
    unsigned char head[1024], local[LOCAL_HEAD], central[CENTRAL_HEAD];
    const size_t head_bytes = write_npy_head(head, port, answer), name = strlen(port->name), suffix = head_bytes > 0 ? 4 : 0;
    const int64_t size = (int64_t)head_bytes + answer->bytes;
    if (to->at + size > 0xf0000000) end("would be larger than 4 GB: write .npy files, with -o FOLDER", to->path);
    const uint32_t sum = checksum_of_zip(checksum_of_zip(0, head, head_bytes), answer->data, (size_t)answer->bytes);
    const uint32_t bytes = (uint32_t)size, length = (uint32_t)(name + suffix), here = (uint32_t)to->at;
    put_numbers(local, (const uint32_t[]){0x04034b50u, STORED, UTF8, 0, 0, DATE, sum, bytes, bytes, length, 0}, "42222244422");
    put_numbers(central,
                (const uint32_t[]){0x02014b50u, UNIX, STORED, UTF8, 0, 0, DATE, sum, bytes, bytes, length, 0, 0, 0, 0, 0x81a40000u, here},
                "42222224442222244");
    put_bytes(to, local, sizeof local);
    put_bytes(to, port->name, name);
    put_bytes(to, ".npy", suffix);
    put_bytes(to, head, head_bytes);
    put_bytes(to, answer->data, (size_t)answer->bytes);
    to->list = realloc(to->list, to->listed + sizeof central + length);
    if (to->list == NULL) end("there is no memory left", "");
    memcpy(to->list + to->listed, central, sizeof central);
    memcpy(to->list + to->listed + sizeof central, port->name, name);
    memcpy(to->list + to->listed + sizeof central + name, ".npy", suffix);
    to->listed += sizeof central + length;
    to->count++;
}

static void close_archive(archive *to) {
    unsigned char last[END_HEAD];
    const uint32_t count = (uint32_t)to->count, size = (uint32_t)to->listed, here = (uint32_t)to->at;
    put_numbers(last, (const uint32_t[]){0x06054b50u, 0, 0, count, count, size, here, 0}, "42222442");
    put_bytes(to, to->list, to->listed);
    put_bytes(to, last, sizeof last);
    if (fclose(to->file) != 0) end("cannot be written", to->path);
    free(to->list);
}
