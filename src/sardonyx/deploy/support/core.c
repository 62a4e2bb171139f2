/* ---- sizes ---- */

typedef struct {
    int64_t n[SX_SYMBOLS + 1];      /* the values of the plan's symbols */
    int64_t sizes[SX_PORT_AXES + 1]; /* the shapes of inputs, then of outputs, one after the other */
    int64_t bytes[SX_INPUTS + SX_OUTPUTS + 1];
    int64_t offsets[SX_SLOTS + 1];
    int64_t arena;
} layout;

static const sardonyx_port *port_of(int32_t number) {
    return number < SX_INPUTS ? &inputs[number] : &outputs[number - SX_INPUTS];
}

/* Everything that follows from the dynamic dimensions. */
static int32_t lay_out(const int64_t *dims, layout *found, sardonyx_error *error) {
    sx_sizing sizing = {0, 0, 0};
    int64_t slots[SX_SLOTS + 1];
    if (SX_DIMS > 0 && dims == 0) return fail(error, SARDONYX_BAD_ARGUMENT, "dims is NULL", "", 0, 0);
    memset(found, 0, sizeof *found);
    for (int32_t i = 0; i < SX_DIMS; i++) {
        const sx_range range = dim_ranges[i];
        if (dims[i] < range.least)
            return fail(error, SARDONYX_BAD_SHAPE, "the dimension {where} cannot be {a}: {b} is the least", dim_names[i],
                        dims[i], range.least);
        if (dims[i] > range.most)
            return fail(error, SARDONYX_BAD_SHAPE, "the dimension {where} cannot be {a}: {b} is the most", dim_names[i],
                        dims[i], range.most);
        found->n[dim_symbols[i]] = dims[i];
    }
    compute_sizes(&sizing, found->n, found->sizes, slots);
    for (int32_t i = 0, at = 0; i < SX_INPUTS + SX_OUTPUTS; i++) {
        const sardonyx_port *port = port_of(i);
        int64_t bytes = port->element_bytes;
        for (int32_t axis = 0; axis < port->rank; axis++, at++) {
            if (found->sizes[at] < 0)
                sx_refuse(&sizing, "the inputs are too small for the model: a size would be {a}", found->sizes[at], 0);
            bytes = sx_times(&sizing, bytes, found->sizes[at]);
        }
        found->bytes[i] = bytes;
    }
    if (sizing.wrong != 0) return fail(error, SARDONYX_BAD_SHAPE, sizing.wrong, "", sizing.a, sizing.b);
    found->arena = place_slots(slots, found->offsets);
    return SARDONYX_OK;
}

/* ---- what there is ---- */

const sardonyx_port *model_input(int32_t number) {
    return number >= 0 && number < SX_INPUTS ? &inputs[number] : 0;
}

const sardonyx_port *model_output(int32_t number) {
    return number >= 0 && number < SX_OUTPUTS ? &outputs[number] : 0;
}

const char *model_dim(int32_t number) {
    return number >= 0 && number < SX_DIMS ? dim_names[number] : 0;
}

int32_t model_bind(int32_t input, const int64_t *shape, int32_t rank, int64_t *dims, sardonyx_error *error) {
    if (input < 0 || input >= SX_INPUTS)
        return fail(error, SARDONYX_BAD_ARGUMENT, "there is no input {a}: the model has {b}", "", input, SX_INPUTS);
    const sardonyx_port *port = &inputs[input];
    const sx_axis *axis = axes;
    for (int32_t i = 0; i < input; i++) axis += inputs[i].rank;
    if (rank != port->rank)
        return fail(error, SARDONYX_BAD_SHAPE, "input {where} has {b} dimensions, not {a}", port->name, rank, port->rank);
    for (int32_t i = 0; i < rank; i++, axis++) {
        if (axis->kind == SX_FOLLOWS) continue;
        int64_t expected = axis->value;
        if (axis->kind == SX_DYNAMIC) {
            int64_t *dim = &dims[axis->value];
            if (*dim < 0) *dim = shape[i];
            expected = *dim;
        }
        if (shape[i] != expected || shape[i] < 0)
            return fail(error, SARDONYX_BAD_SHAPE, "input {where}: a dimension is {a}, where {b} was expected", port->name,
                        shape[i], expected);
    }
    return SARDONYX_OK;
}

static int32_t shape_of(int32_t number, const int64_t *dims, int64_t *shape, sardonyx_error *error) {
    layout found;
    const int32_t code = lay_out(dims, &found, error);
    if (code != SARDONYX_OK) return code;
    int32_t at = 0;
    for (int32_t i = 0; i < number; i++) at += port_of(i)->rank;
    for (int32_t i = 0; i < port_of(number)->rank; i++) shape[i] = found.sizes[at + i];
    return SARDONYX_OK;
}

int32_t model_input_shape(int32_t number, const int64_t *dims, int64_t *shape, sardonyx_error *error) {
    if (number < 0 || number >= SX_INPUTS)
        return fail(error, SARDONYX_BAD_ARGUMENT, "there is no input {a}: the model has {b}", "", number, SX_INPUTS);
    return shape_of(number, dims, shape, error);
}

int32_t model_output_shape(int32_t number, const int64_t *dims, int64_t *shape, sardonyx_error *error) {
    if (number < 0 || number >= SX_OUTPUTS)
        return fail(error, SARDONYX_BAD_ARGUMENT, "there is no output {a}: the model has {b}", "", number, SX_OUTPUTS);
    return shape_of(SX_INPUTS + number, dims, shape, error);
}

/* ---- a context: itself, and then its arena ---- */

struct model_context {
    sx_run run;
    sardonyx_options options;
    const unsigned char *weights;
    unsigned char *arena;
    int64_t capacity;   /* of the arena, in bytes */
    int32_t is_laid_out;
    int64_t dims[SX_DIMS + 1];
    layout now;         /* for these dims */
    void *t[SX_TENSORS + 1];
};

/* What the build said of it is a promise to callers who give the memory. */
typedef char the_context_fits[sizeof(struct model_context) <= SX_CONTEXT_BYTES ? 1 : -1];

static const int64_t own_bytes = SX_CONTEXT_BYTES;

static int is_aligned(const void *memory, uintptr_t to) {
    return (uintptr_t)memory % to == 0;
}

#if SX_HOSTED
#if SX_THREADS && defined(__linux__)
enum { LARGEST_PAGE = 1 << 16, LARGE = 1 << 22, IN_LARGE_PAGES = 14 };
int madvise(void *memory, size_t bytes, int advice); /* in a header, but for programs of no C standard alone */

/* Ask for large pages, as numpy does: matrices that are read by columns miss fewer addresses. A wish: it may fail. */
static void prefer_large_pages(char *memory, size_t bytes) {
    size_t before = (LARGEST_PAGE - (uintptr_t)memory % LARGEST_PAGE) % LARGEST_PAGE;
    if (bytes >= LARGE) (void)madvise(memory + before, (bytes - before) / LARGEST_PAGE * LARGEST_PAGE, IN_LARGE_PAGES);
}
#else
static void prefer_large_pages(char *memory, size_t bytes) {
    (void)memory, (void)bytes;
}
#endif

/* The address that malloc gave stands right before the aligned one. */
static void *allocate_here(void *user, size_t bytes) {
    (void)user;
    char *memory = bytes > SIZE_MAX - 2 * SX_ALIGNMENT ? 0 : malloc(bytes + SX_ALIGNMENT + sizeof(void *));
    if (memory == 0) return 0;
    char *found = memory + sizeof(void *);
    found += (SX_ALIGNMENT - (uintptr_t)found % SX_ALIGNMENT) % SX_ALIGNMENT;
    memcpy(found - sizeof(void *), &memory, sizeof(void *));
    prefer_large_pages(found, bytes);
    return found;
}

static void release_here(void *user, void *memory, size_t bytes) {
    void *given;
    (void)user, (void)bytes;
    memcpy(&given, (char *)memory - sizeof(void *), sizeof(void *));
    free(given);
}
#endif

int32_t model_memory_needed(const int64_t *dims, int64_t *bytes, sardonyx_error *error) {
    layout found;
    const int32_t code = lay_out(dims, &found, error);
    if (code == SARDONYX_OK) *bytes = own_bytes + found.arena;
    return code;
}

/* ---- work in pieces ---- */

static int32_t look(sx_run *run) {
    return SX_LOAD(&run->stop);
}

/* Of a chunk; a negative grain goes backward. */
static int64_t size_of(int64_t grain) {
    return grain < 0 ? -grain : grain > 0 ? grain : 1;
}

static void alone(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {
    const int64_t size = size_of(grain);
    int64_t begin = grain < 0 && count > 0 ? (count - 1) / size * size : 0;
    for (; begin >= 0 && begin < count && SX_LOAD(&run->stop) == SX_OK; begin += grain < 0 ? -size : size)
        body(arg, begin, count - begin < size ? count : begin + size);
}

typedef struct {
    sx_run *run;
    sx_body body;
    void *arg;
    int64_t count, grain;
} work;

static void do_piece(void *job, int64_t i) {
    const work *here = job;
    const int64_t begin = i * here->grain, left = here->count - begin;
    if (SX_LOAD(&here->run->stop) != SX_OK) return;
    here->body(here->arg, begin, left < here->grain ? here->count : begin + here->grain);
}

/* Through the caller's hook. */
static void hooked(sx_run *run, int64_t count, int64_t grain, sx_body body, void *arg) {
    const struct model_context *context = run->pool;
    work job = {run, body, arg, count, size_of(grain)};
    if (count <= job.grain) {
        if (count > 0) do_piece(&job, 0);
        return;
    }
    context->options.parallel(context->options.user, (count - 1) / job.grain + 1, do_piece, &job);
}

/* ---- open, run, close ---- */

static int32_t find_weights(struct model_context *context, sardonyx_error *error) {
    const sardonyx_options *options = &context->options;
    context->weights = options->weights;
#if SX_EMBEDDED
    if (context->weights == 0) {
        context->weights = (const unsigned char *)model_weights;
        return SARDONYX_OK;
    }
#endif
    if (context->weights == 0 && SX_WEIGHTS_BYTES > 0)
        return fail(error, SARDONYX_BAD_WEIGHTS, "options.weights is NULL, and this artifact has none of its own", "", 0, 0);
    if (options->weights_bytes != SX_WEIGHTS_BYTES)
        return fail(error, SARDONYX_BAD_WEIGHTS, "the weights have {a} bytes, where {b} were expected", "",
                    options->weights_bytes, SX_WEIGHTS_BYTES);
    if (!is_aligned(context->weights, SX_ADDRESSES))
        return fail(error, SARDONYX_BAD_WEIGHTS, "the weights must be aligned to {a} bytes", "", SX_ADDRESSES, 0);
    int32_t differing = 0;
    for (size_t i = 0; i < sizeof weights_head; i++) differing += context->weights[i] != weights_head[i];
    if (differing != 0)
        return fail(error, SARDONYX_BAD_WEIGHTS, "these are the weights of another model", "", 0, 0);
    return SARDONYX_OK;
}

static int32_t find_threads(struct model_context *context, sardonyx_error *error) {
    sx_run *run = &context->run;
    const int32_t threads = context->options.threads < 1 ? 1 : context->options.threads;
    run->threads = threads;
    run->look = look;
    run->parallel = alone;
    run->budget = -1;
    if (context->options.parallel != 0) {
        run->parallel = hooked;
        run->pool = context;
        return SARDONYX_OK;
    }
#if SX_THREADS
    if (threads > 1) {
        run->pool = model_pool_create(threads, SX_SPIN);
        if (run->pool == 0) return fail(error, SARDONYX_NO_MEMORY, "no memory for {a} threads", "", threads, 0);
        run->parallel = model_parallel;
    }
#else
    (void)error;
#endif
    return SARDONYX_OK;
}

int32_t model_open(struct model_context **context, const sardonyx_options *options, sardonyx_error *error) {
    sardonyx_options wanted = {0};
    if (context == 0) return fail(error, SARDONYX_BAD_ARGUMENT, "there is nowhere to put the context: it is NULL", "", 0, 0);
    *context = 0;
    if (options != 0) wanted = *options;
    if ((wanted.allocate == 0) != (wanted.release == 0))
        return fail(error, SARDONYX_BAD_ARGUMENT, "allocate and release must be given together", "", 0, 0);
#if SX_HOSTED
    if (wanted.allocate == 0) {
        wanted.allocate = allocate_here;
        wanted.release = release_here;
    }
#endif
    void *memory = wanted.memory;
    if (memory != 0 && (!is_aligned(memory, SX_ADDRESSES) || wanted.memory_bytes < own_bytes))
        return fail(error, SARDONYX_NO_MEMORY, "the memory must be aligned to {a} bytes and have at least {b}", "",
                    SX_ADDRESSES, own_bytes);
    if (memory == 0 && wanted.allocate != 0) memory = wanted.allocate(wanted.user, (size_t)own_bytes);
    if (memory == 0) return fail(error, SARDONYX_NO_MEMORY, "no memory for a context of {a} bytes", "", own_bytes, 0);
    struct model_context *made = memory;
    memset(made, 0, sizeof *made);
    made->options = wanted;
    if (wanted.memory != 0) {
        made->arena = (unsigned char *)memory + own_bytes;
        made->capacity = wanted.memory_bytes - own_bytes;
    }
    int32_t code = find_weights(made, error);
    if (code == SARDONYX_OK) code = find_threads(made, error);
    if (code != SARDONYX_OK) {
        model_close(made);
        return code;
    }
    for (int32_t i = 0; i < SX_TENSORS; i++)
        if (places[i].kind == SX_CONSTANT)
            made->t[i] = (void *)(uintptr_t)(made->weights + constant_offsets[places[i].number]);
    *context = made;
    return SARDONYX_OK;
}

static void release_arena(struct model_context *context) {
    if (context->options.memory == 0 && context->arena != 0)
        context->options.release(context->options.user, context->arena, (size_t)context->capacity);
    if (context->options.memory == 0) context->arena = 0;
}

void model_close(struct model_context *context) {
    if (context == 0) return;
#if SX_THREADS
    if (context->run.parallel == model_parallel) model_pool_destroy(context->run.pool);
#endif
    release_arena(context);
    const sardonyx_options options = context->options;
    if (options.memory == 0) options.release(options.user, context, (size_t)own_bytes);
}

void model_stop(struct model_context *context) {
    SX_STORE(&context->run.stop, SX_CANCELLED);
}

static int is_ready_for(const struct model_context *context, const int64_t *dims) {
    int32_t differing = 0;
    if (!context->is_laid_out || (SX_DIMS > 0 && dims == 0)) return 0;
    for (int32_t i = 0; i < SX_DIMS; i++) differing += dims[i] != context->dims[i];
    return differing == 0;
}

/* Have an arena for these dimensions, and pointers into it. */
static int32_t prepare(struct model_context *context, const int64_t *dims, sardonyx_error *error) {
    if (is_ready_for(context, dims)) return SARDONYX_OK;
    context->is_laid_out = 0;
    const int32_t code = lay_out(dims, &context->now, error);
    if (code != SARDONYX_OK) return code;
    const int64_t needed = context->now.arena;
    if (needed > context->capacity && context->options.memory == 0) {
        release_arena(context);
        context->capacity = 0;
        context->arena = context->options.allocate(context->options.user, (size_t)needed);
        if (context->arena != 0) context->capacity = needed;
    }
    if (needed > context->capacity)
        return fail(error, SARDONYX_NO_MEMORY, "the run needs an arena of {a} bytes, and there are {b}", "", needed,
                    context->capacity);
    for (int32_t i = 0; i < SX_TENSORS; i++)
        if (places[i].kind == SX_SLOT) context->t[i] = context->arena + context->now.offsets[places[i].number];
    for (int32_t i = 0; i < SX_DIMS; i++) context->dims[i] = dims[i];
    context->is_laid_out = 1;
    return SARDONYX_OK;
}

static int32_t check_buffer(const sardonyx_port *port, sardonyx_buffer buffer, int64_t needed, int exactly,
                            sardonyx_error *error) {
    if (exactly ? buffer.bytes != needed : buffer.bytes < needed)
        return fail(error, SARDONYX_BAD_SHAPE, "{where}: the buffer has {a} bytes, where {b} were expected", port->name,
                    buffer.bytes, needed);
    if (needed > 0 && buffer.data == 0)
        return fail(error, SARDONYX_BAD_ARGUMENT, "{where}: the buffer is NULL", port->name, 0, 0);
    if (!is_aligned(buffer.data, (uintptr_t)port->element_bytes))
        return fail(error, SARDONYX_BAD_ARGUMENT, "{where}: the buffer must be aligned to {a} bytes", port->name,
                    port->element_bytes, 0);
    return SARDONYX_OK;
}

static int32_t take_buffers(struct model_context *context, const sardonyx_buffer *fed, const sardonyx_buffer *wanted,
                            sardonyx_error *error) {
    if ((fed == 0 && SX_INPUTS > 0) || (wanted == 0 && SX_OUTPUTS > 0))
        return fail(error, SARDONYX_BAD_ARGUMENT, "inputs or outputs are NULL", "", 0, 0);
    for (int32_t i = 0; i < SX_INPUTS; i++) {
        const int32_t code = check_buffer(&inputs[i], fed[i], context->now.bytes[i], 1, error);
        if (code != SARDONYX_OK) return code;
        context->t[input_tensors[i]] = fed[i].data;
    }
    for (int32_t i = 0; i < SX_OUTPUTS; i++) {
        const int32_t code = check_buffer(&outputs[i], wanted[i], context->now.bytes[SX_INPUTS + i], 0, error);
        if (code != SARDONYX_OK) return code;
        if (output_is_written[i]) context->t[output_tensors[i]] = wanted[i].data;
    }
    return SARDONYX_OK;
}

static int32_t explain(const sx_run *run, sardonyx_error *error) {
    if (run->error == SX_CANCELLED) return fail(error, SARDONYX_STOPPED, "the run was stopped", "", 0, 0);
    for (int32_t i = 0; i < SX_REPORTS; i++)
        if (reports[i].step == run->step)
            return fail(error, SARDONYX_BAD_VALUE, reports[i].reasons[run->reason], reports[i].where, run->a, run->b);
    return fail(error, SARDONYX_BAD_VALUE, "step {a} has no answer for {b}", "", run->step, run->a);
}

int32_t model_run(struct model_context *context, const int64_t *dims, const sardonyx_buffer *fed,
                  const sardonyx_buffer *wanted, sardonyx_error *error) {
    if (context == 0) return fail(error, SARDONYX_BAD_ARGUMENT, "the context is NULL", "", 0, 0);
    int32_t code = prepare(context, dims, error);
    if (code == SARDONYX_OK) code = take_buffers(context, fed, wanted, error);
    if (code != SARDONYX_OK) return code;
    sx_run *run = &context->run;
    run->error = SX_OK;
    const int32_t failed = model_main(run, context->t, context->now.n, 0, SX_STEPS, 0, 0);
    SX_STORE(&run->stop, SX_OK);
    if (failed != SX_OK) return explain(run, error);
    for (int32_t i = 0; i < SX_OUTPUTS; i++)
        if (!output_is_written[i] && context->now.bytes[SX_INPUTS + i] > 0)
            memcpy(wanted[i].data, context->t[output_tensors[i]], (size_t)context->now.bytes[SX_INPUTS + i]);
    return SARDONYX_OK;
}
