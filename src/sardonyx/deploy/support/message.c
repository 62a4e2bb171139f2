/* ---- errors as text, without stdio ---- */

static char *put_text(char *at, char *end, const char *text) {
    while (*text != 0 && at < end) *at++ = *text++;
    return at;
}

static char *put_number(char *at, char *end, int64_t value) {
    char digits[24];
    int32_t count = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0 && at < end) *at++ = '-';
    while (count > 0 && at < end) *at++ = digits[--count];
    return at;
}

static int starts_with(const char *text, const char *word) {
    for (; *word != 0 && *text == *word; word++) text++;
    return *word == 0;
}

/* `text` with {where}, {a} and {b} filled in; returns `code`. */
static int32_t fail(sardonyx_error *error, int32_t code, const char *text, const char *where, int64_t a, int64_t b) {
    if (error == 0) return code;
    char *at = error->text, *end = at + sizeof error->text - 1;
    while (*text != 0 && at < end) {
        if (starts_with(text, "{where}")) {
            at = put_text(at, end, where);
            text += 7;
        } else if (starts_with(text, "{a}") || starts_with(text, "{b}")) {
            at = put_number(at, end, text[1] == 'a' ? a : b);
            text += 3;
        } else {
            *at++ = *text++;
        }
    }
    *at = 0;
    error->code = code;
    return code;
}
