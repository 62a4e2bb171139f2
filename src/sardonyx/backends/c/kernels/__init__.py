"""Contractions as C: matrix products, convolutions, and the packing of their operands.

    isa         a family of processors, and the tile of C that its registers hold
    elements    element types in memory
    packing     operands in panels, from numpy and in C
    tile        the micro-kernel
    nest        the blocks and tasks around it
    gemm gemv   products of matrices; of a few rows
    conv        convolution, one to three dimensions, grouped; `windows` has where its rows lie
    winograd    convolution of 3×3 by fewer multiplications; `cells` has its transforms, `points` its weights
    half        products and convolutions in float16 arithmetic; `halves` has their weights, `half_tile` the micro-kernel
    amx         products of float32 through AMX tiles, `amx_conv` convolutions: numbers as `parts` of bfloat16 (`tiles` has the
                micro-kernel, `planes` the weights) or as digits (`digit_tiles`); `tile_attention` attention; `byte_tiles` products of bytes
    depthwise   convolution of every channel by itself, and of groups of a few
    attention   two products with a softmax in between, which has functions of rows of its own

Every kernel is text of one static function, to be put behind the epilogue that it calls:

    static inline void store_row(const struct env *env, int64_t b, int64_t m, int64_t n,
                                 int64_t count, const float *acc);
    static void <name>(sx_run *run, const struct env *env, const void *a, const void *b,
                       void *scratch, const int64_t *n);

Where `store_row` is short, `store_row_soon(env, b, m, n, count)` may ask for the memory that it is going to need.

Sizes are numbers, or C text over `n[0]`, `n[1]`, …. The answer has the same bits for any number of
threads, and for sizes known or not known beforehand.
"""
