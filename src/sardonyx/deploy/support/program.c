/* A program around a model: arrays in from files, answers out to files. */

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
         "       model INPUTS.npz [-o OUTPUTS.npz]\n"
         "Inputs in the model's order, or by name; an .npz has them by name. Files that are neither are raw elements, `-` is standard input.\n"
         "Each output is written to FOLDER/NAME.npy, or all to one .npz.");
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

static int32_t find_input(const char *name, size_t length) {
    for (int32_t i = 0; i < MODEL_INPUTS; i++)
        if (strlen(model_input(i)->name) == length && strncmp(model_input(i)->name, name, length) == 0) return i;
    return -1;
}

/* An input's elements, and what its shape says of the dimensions. */
static void take_array(array file, int32_t input, const char *path, array *fed, int64_t *dims) {
    sardonyx_error error;
    fed[input] = file;
    if (!is_npy(&file)) return;
    open_npy(&fed[input], model_input(input), path);
    check(model_bind(input, fed[input].shape, fed[input].rank, dims, &error), &error);
}

static void take_npz(const array *file, const char *path, array *fed, int64_t *dims) {
    member found;
    int64_t at = first_member(file, path);
    for (int64_t left = member_count(file); left > 0; left--) {
        at = read_member(file, at, path, &found);
        const size_t length = strlen(found.name);
        const size_t bare = length > 4 && strcmp(found.name + length - 4, ".npy") == 0 ? length - 4 : length;
        const int32_t input = find_input(found.name, bare);
        if (input < 0) end("has an array that no input is called; --list shows all", found.name);
        take_array(found.content, input, found.name, fed, dims);
    }
}

/* NAME=FILE is for the input of that name, FILE for the next one; an .npz says for itself. */
static void take_argument(const char *argument, array *fed, int64_t *dims, int32_t *next) {
    const char *equals = strchr(argument, '=');
    const int32_t named = equals == NULL ? -1 : find_input(argument, (size_t)(equals - argument));
    const char *path = named < 0 ? argument : equals + 1;
    const array file = read_file(path);
    if (is_zip(&file)) {
        if (named >= 0) end("has names of its own: leave NAME= away", path);
        take_npz(&file, path, fed, dims);
        return;
    }
    const int32_t input = named < 0 ? *next : named;
    if (input >= MODEL_INPUTS) end("there are more files than inputs", path);
    *next = input + 1;
    take_array(file, input, path, fed, dims);
}

/* To FOLDER/NAME.npy each, or to one file where its name ends in .npz. */
static void write_answers(const char *to, const array *answers) {
    const size_t length = strlen(to);
    if (length > 4 && strcmp(to + length - 4, ".npz") == 0) {
        archive file = open_archive(to);
        for (int32_t i = 0; i < MODEL_OUTPUTS; i++) add_array(&file, model_output(i), &answers[i]);
        close_archive(&file);
        puts(to);
        return;
    }
    for (int32_t i = 0; i < MODEL_OUTPUTS; i++) {
        char path[4096];
        const char *suffix = description_of(model_output(i)->type) == NULL ? "raw" : "npy";
        snprintf(path, sizeof path, "%s/%s.%s", to, output_files[i], suffix);
        write_array(path, model_output(i), &answers[i]);
        puts(path);
    }
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
    const char *to = ".";
    int32_t threads = 1, next = 0;
    for (int32_t i = 0; i < MODEL_DIMS; i++) dims[i] = -1;
    if (count < 2 && MODEL_INPUTS > 0) return help();
    for (int i = 1; i < count; i++) {
        const char *one = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(one, "--help") == 0 || strcmp(one, "-h") == 0) return help();
        if (strcmp(one, "--list") == 0) return list();
        if (strcmp(one, "--self-test") == 0) return self_test();
        if (one[0] == '-' && one[1] != 0) {
            if (value == NULL) end("an argument is missing behind it", one);
            if (strcmp(one, "-o") == 0) to = value;
            else if (strcmp(one, "--threads") == 0) threads = atoi(value);
            else if (strcmp(one, "--dim") == 0 && strchr(value, '=') != NULL)
                dims[find_dim(value, (size_t)(strchr(value, '=') - value))] = strtoll(strchr(value, '=') + 1, NULL, 10);
            else end("is no option; --help shows all", one);
            i++;
            continue;
        }
        take_argument(one, fed, dims, &next);
    }
    for (int32_t i = 0; i < MODEL_INPUTS; i++)
        if (fed[i].data == NULL) end("nothing was given for this input", model_input(i)->name);
    for (int32_t i = 0; i < MODEL_DIMS; i++)
        if (dims[i] < 0) end("give this dimension a size with --dim", model_dim(i));
    run(fed, dims, answers, threads);
    write_answers(to, answers);
    return 0;
}
