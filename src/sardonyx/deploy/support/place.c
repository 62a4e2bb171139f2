/* ---- where slots lie in the arena, for these sizes ----
 *
 * Slots that live at the same time share no bytes. Each is placed at the lowest offset that is free while it
 * lives, in the one of three orders that needs the smallest arena: the largest, the longest-lived, the earliest first.
 */

enum { LARGEST, LONGEST, EARLIEST, ORDERS };

typedef struct {
    int64_t offset, end;
    int32_t first, last;
} spot;

static int64_t aligned(int64_t bytes) {
    return (bytes + SX_ALIGNMENT - 1) / SX_ALIGNMENT * SX_ALIGNMENT;
}

static int comes_before(const int64_t *bytes, int order, int32_t a, int32_t b) {
    const int32_t length_a = lives[a].last - lives[a].first, length_b = lives[b].last - lives[b].first;
    if (order == LONGEST && length_a != length_b) return length_a > length_b;
    if (order == EARLIEST && lives[a].first != lives[b].first) return lives[a].first < lives[b].first;
    if (bytes[a] != bytes[b]) return bytes[a] > bytes[b];
    if (order == LARGEST && lives[a].first != lives[b].first) return lives[a].first < lives[b].first;
    return a < b;
}

static void sort_slots(const int64_t *bytes, int order, int32_t *sorted) {
    for (int32_t i = 0; i < SX_SLOTS; i++) {
        int32_t at = i;
        for (; at > 0 && comes_before(bytes, order, i, sorted[at - 1]); at--) sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
}

/* The lowest offset that is free for `bytes` while `life` lasts; spots are sorted by offset. */
static int64_t find_room(const spot *spots, int32_t count, int64_t bytes, sx_life life) {
    int64_t at = 0;
    for (int32_t i = 0; i < count; i++) {
        if (spots[i].first > life.last || life.first > spots[i].last) continue;
        if (spots[i].offset - at >= bytes) break;
        if (spots[i].end > at) at = spots[i].end;
    }
    return at;
}

static int spot_comes_before(const spot *a, const spot *b) {
    if (a->offset != b->offset) return a->offset < b->offset;
    if (a->end != b->end) return a->end < b->end;
    return a->first != b->first ? a->first < b->first : a->last < b->last;
}

/* Offsets in one order; returns the bytes of the arena. */
static int64_t place_in_order(const int64_t *bytes, int order, int64_t *offsets) {
    int32_t sorted[SX_SLOTS + 1];
    spot spots[SX_SLOTS + 1];
    int64_t total = 0;
    sort_slots(bytes, order, sorted);
    for (int32_t i = 0; i < SX_SLOTS; i++) {
        const int32_t slot = sorted[i];
        const int64_t size = aligned(bytes[slot]), at = find_room(spots, i, size, lives[slot]);
        const spot here = {at, at + size, lives[slot].first, lives[slot].last};
        int32_t position = i;
        for (; position > 0 && spot_comes_before(&here, &spots[position - 1]); position--)
            spots[position] = spots[position - 1];
        spots[position] = here;
        offsets[slot] = at;
        if (at + size > total) total = at + size;
    }
    return total;
}

static int64_t place_slots(const int64_t *bytes, int64_t *offsets) {
    int64_t best = -1, tried[SX_SLOTS + 1];
    for (int order = 0; order < ORDERS; order++) {
        const int64_t total = place_in_order(bytes, order, tried);
        if (best >= 0 && total >= best) continue;
        best = total;
        for (int32_t i = 0; i < SX_SLOTS; i++) offsets[i] = tried[i];
    }
#ifdef SX_BOUNDED_ARENA
    if (best > SX_BOUNDED_ARENA) {
        best = SX_BOUNDED_ARENA;
        memcpy(offsets, bounded_offsets, sizeof bounded_offsets);
    }
#endif
    return best;
}
