/* Tile registers in plain C, in place of support/tiles.h, so that kernels that need a CPU with AMX run on any. What a
 * dot product computes is what Intel's manual says of TDPBF16PS: even and odd k are summed apart by fused
 * multiply-adds from zero, then together, then added to what there was; to nearest even, denormals are zero. */
#ifndef SX_TILES_H
#define SX_TILES_H

#include <stdint.h>
#include <string.h>

static _Thread_local struct {
    int32_t configured;
    uint8_t rows[8];
    uint16_t bytes[8];
    uint8_t data[8][16][64];
} tiles;

/* Read by tests: what went wrong. A real CPU would end the process. */
__attribute__((weak, visibility("default"))) int32_t tile_faults, tiles_left_configured;

__attribute__((unused, noinline)) static void tile_check(int tile) {
    if (!tiles.configured || tiles.rows[tile] == 0 || tiles.rows[tile] > 16 || tiles.bytes[tile] == 0 || tiles.bytes[tile] > 64)
        __atomic_fetch_add(&tile_faults, 1, __ATOMIC_RELAXED);
}

__attribute__((unused, noinline)) static void sx_tiles_configure(const void *config) {
    const uint8_t *bytes = config;
    for (int32_t i = 1; i < 64; i++)
        if ((i < 16 || (i >= 32 && i < 48) || i >= 56) && bytes[i] != 0)
            __atomic_fetch_add(&tile_faults, 1, __ATOMIC_RELAXED);
    if (bytes[0] != 1)
        __atomic_fetch_add(&tile_faults, 1, __ATOMIC_RELAXED);
    if (!tiles.configured)
        __atomic_fetch_add(&tiles_left_configured, 1, __ATOMIC_RELAXED);
    tiles.configured = 1;
    memcpy(tiles.bytes, bytes + 16, 16);
    memcpy(tiles.rows, bytes + 48, 8);
    memset(tiles.data, 0, sizeof tiles.data);
}

__attribute__((unused, noinline)) static void sx_tiles_release(void) {
    if (tiles.configured)
        __atomic_fetch_sub(&tiles_left_configured, 1, __ATOMIC_RELAXED);
    memset(&tiles, 0, sizeof tiles);
}

__attribute__((unused, noinline)) static void sx_tile_zero(int tile) {
    tile_check(tile);
    memset(tiles.data[tile], 0, sizeof tiles.data[tile]);
}

__attribute__((unused, noinline)) static void sx_tile_load(int tile, const void *from, int64_t stride) {
    sx_tile_zero(tile);
    for (int32_t r = 0; r < tiles.rows[tile]; r++)
        memcpy(tiles.data[tile][r], (const uint8_t *)from + r * stride, tiles.bytes[tile]);
}

__attribute__((unused, noinline)) static void sx_tile_store(int tile, void *to, int64_t stride) {
    tile_check(tile);
    for (int32_t r = 0; r < tiles.rows[tile]; r++)
        memcpy((uint8_t *)to + r * stride, tiles.data[tile][r], tiles.bytes[tile]);
}

static float tile_flushed(float value) {
    return __builtin_fabsf(value) < 0x1p-126f ? __builtin_copysignf(0.0f, value) : value;
}

static float tile_value(const uint8_t *from) {
    uint16_t half;
    memcpy(&half, from, 2);
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, 4);
    return tile_flushed(value);
}

__attribute__((unused, noinline)) static void tile_check_product(int sums, int a, int b) {
    tile_check(sums), tile_check(a), tile_check(b);
    if (tiles.rows[sums] != tiles.rows[a] || tiles.rows[b] * 4 != tiles.bytes[a] || tiles.bytes[b] != tiles.bytes[sums])
        __atomic_fetch_add(&tile_faults, 1, __ATOMIC_RELAXED);
}

__attribute__((unused, noinline)) static void sx_tile_dot(int sums, int a, int b) {
    const int32_t depth = tiles.bytes[a] / 4, width = tiles.bytes[sums] / 4;
    float y[2][16][16] = {0};
    tile_check_product(sums, a, b);
    for (int32_t k = 0; k < depth; k++)
        for (int32_t n = 0; n < width; n++)
            for (int32_t i = 0; i < 2; i++)
                y[i][k][n] = tile_value(&tiles.data[b][k][4 * n + 2 * i]);
    for (int32_t m = 0; m < tiles.rows[sums]; m++) {
        float evens[16] = {0}, odds[16] = {0};
        for (int32_t k = 0; k < depth; k++) {
            const float first = tile_value(&tiles.data[a][m][4 * k]), second = tile_value(&tiles.data[a][m][4 * k + 2]);
            for (int32_t n = 0; n < 16; n++) {
                evens[n] = tile_flushed(__builtin_fmaf(first, y[0][k][n], evens[n]));
                odds[n] = tile_flushed(__builtin_fmaf(second, y[1][k][n], odds[n]));
            }
        }
        for (int32_t n = 0; n < width; n++) {
            const float even = evens[n], odd = odds[n];
            float sum;
            memcpy(&sum, &tiles.data[sums][m][4 * n], 4);
            sum = tile_flushed(tile_flushed(sum) + tile_flushed(even + odd));
            memcpy(&tiles.data[sums][m][4 * n], &sum, 4);
        }
    }
}

__attribute__((unused, noinline)) static void tile_dot_of_bytes(int sums, int a, int b, int32_t less) {
    const int32_t depth = tiles.bytes[a] / 4, width = tiles.bytes[sums] / 4;
    int32_t y[16][4][16] = {0};
    tile_check_product(sums, a, b);
    for (int32_t k = 0; k < depth; k++)
        for (int32_t n = 0; n < width; n++)
            for (int32_t i = 0; i < 4; i++)
                y[k][i][n] = (int8_t)tiles.data[b][k][4 * n + i];
    for (int32_t m = 0; m < tiles.rows[sums]; m++) {
        uint32_t sum[16] = {0};
        memcpy(sum, tiles.data[sums][m], (size_t)width * 4);
        for (int32_t k = 0; k < 4 * depth; k++) {
            const int32_t byte = tiles.data[a][m][k], x = byte < 128 ? byte : byte - less;
            for (int32_t n = 0; n < 16; n++)
                sum[n] += (uint32_t)(x * y[k / 4][k % 4][n]);
        }
        memcpy(tiles.data[sums][m], sum, (size_t)width * 4);
    }
}

/* As TDPBUSD: bytes of a without a sign, of b with one; sums wrap. */
__attribute__((unused, noinline)) static void sx_tile_dot_bytes(int sums, int a, int b) {
    tile_dot_of_bytes(sums, a, b, 0);
}

/* As TDPBSSD: bytes with a sign. */
__attribute__((unused, noinline)) static void sx_tile_dot_signed(int sums, int a, int b) {
    tile_dot_of_bytes(sums, a, b, 256);
}

#endif
