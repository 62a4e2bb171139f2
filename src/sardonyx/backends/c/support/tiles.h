/* Tile registers: eight of up to 16 rows of 64 bytes. They belong to a thread, which configures them before their
 * first use and releases them after the last. A tile is named by a literal number.
 *
 * The compiler's builtins rather than its header, which takes longer to read than a kernel takes to compile. */
#ifndef SX_TILES_H
#define SX_TILES_H

#if !defined(__clang__) || !defined(__AMX_TILE__) || !defined(__AMX_BF16__)
#error "tile registers need clang and a CPU with AMX"
#endif

#define sx_tiles_configure(config) __builtin_ia32_tile_loadconfig(config)
#define sx_tiles_release() __builtin_ia32_tilerelease()
#define sx_tile_zero(tile) __builtin_ia32_tilezero(tile)
#define sx_tile_load(tile, from, stride) __builtin_ia32_tileloadd64(tile, from, stride)
#define sx_tile_store(tile, to, stride) __builtin_ia32_tilestored64(tile, to, stride)
/* sums[m][n] += a[m][k] * b[k / 2][2 * n + k % 2] over 32 values of k, of bfloat16 into float32 */
#define sx_tile_dot(sums, a, b) __builtin_ia32_tdpbf16ps(sums, a, b)
/* sums[m][n] += a[m][k] * b[k / 4][4 * n + k % 4] over 64 values of k, of bytes without a sign and bytes with one into int32 */
#define sx_tile_dot_bytes(sums, a, b) __builtin_ia32_tdpbusd(sums, a, b)
/* the same of bytes with a sign */
#define sx_tile_dot_signed(sums, a, b) __builtin_ia32_tdpbssd(sums, a, b)

#endif
