#include "abi.h"

int32_t k_390c6d9320596b166f40(sx_run *run, void *const *p, const int64_t *n);

/* CALL  a kernel on its tensors and symbols
 * JUMP  to step `to`, always or where the bool in `tensor` is false
 * FIRST, NEXT  the counter in `symbol` is 0 or one more; to step `to` once it has reached the i64 in `tensor`
 * HOST  something that is done between two calls of sx_main */
enum { CALL, JUMP, FIRST, NEXT, HOST };

typedef struct {
    int32_t kind;
    int32_t (*kernel)(sx_run *, void *const *, const int64_t *);
    int32_t tensor, tensors, symbol, symbols, to;
} step;

static const step steps[] = {
    {CALL, k_390c6d9320596b166f40, 0, 7, 0, 2, 0},
};

/* Which tensors and which symbols, step after step. */
static const int32_t tensors[] = {
    2, 3, 4, 0, 5, 6, 1,
};
static const int32_t symbols[] = {
    0, 1,
};

static int32_t call(sx_run *run, const step *now, void *const *t, const int64_t *n) {
    void *p[7];
    int64_t s[2];
    for (int32_t j = 0; j < now->tensors; j++) p[j] = t[tensors[now->tensor + j]];
    for (int32_t j = 0; j < now->symbols; j++) s[j] = n[symbols[now->symbol + j]];
    return now->kernel(run, p, s);
}

static void idle(void *arg, int64_t begin, int64_t end) { (void)arg, (void)begin, (void)end; }

/* The turns of a loop may be as good as endless: whoever hands out work looks at the clock. */
static int64_t count(sx_run *run, const step *now, int64_t *n) {
    const int64_t turn = n[now->symbol] = now->kind == FIRST ? 0 : n[now->symbol] + 1;
    if (turn % 64 == 0) run->parallel(run, 1, 1, idle, 0);
    return turn;
}

/* Run the steps from `first` up to `end`, or until `look` says otherwise. Where `clock` is given, it reads the time before and after every
 * step: times[2 * i] is when step i first began, times[2 * i + 1] how long all its turns took. */
__attribute__((visibility("default")))
int32_t sx_main(sx_run *run, void *const *t, int64_t *n, int32_t first, int32_t end,
                int64_t (*clock)(void), int64_t *times) {
    int64_t begin = clock ? clock() : 0;
    run->since = 0;
    for (int32_t i = first; i < end;) {
        const step *now = &steps[i];
        int32_t next = i + 1;
        run->step = i;
        if (now->kind == CALL) {
            if (call(run, now, t, n) != SX_OK) return run->error;
        } else if (now->kind == JUMP) {
            if (now->tensor < 0 || !*(const uint8_t *)t[now->tensor]) next = now->to;
        } else if (count(run, now, n) >= *(const int64_t *)t[now->tensor]) {
            next = now->to;
        }
        if (clock) {
            const int64_t over = clock();
            if (!times[2 * i]) times[2 * i] = begin;
            times[2 * i + 1] += over - begin;
            begin = over;
        }
        const int32_t word = run->look(run);
        if (word == SX_PAUSED) return run->step = next, word;
        if (word != SX_OK) return run->error = word;
        i = next;
    }
    return SX_OK;
}

__attribute__((visibility("default")))
int32_t sx_again(const sx_call *call) {
    char *const *objects = *(char *const **)(*call->list + call->items);
    for (int32_t i = 0; i < call->count; i++) call->t[call->tensors[i]] = *(void **)(objects[i] + call->at);
    return sx_main(call->run, call->t, call->n, call->first, call->end, 0, 0);
}
