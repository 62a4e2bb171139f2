/* The scalar operations of the kernel language: sx_<operation>_<type>.
 *
 * All are `static inline` and defined for every operand; docs/numerics.md says what they answer.
 * Float addition, subtraction, multiplication and division, and comparisons, are C's own operators.
 * Written for -fno-math-errno -fno-trapping-math and either setting of -ffp-contract; most float64
 * functions and `fmod` call the C library (-lm).
 */
#ifndef SX_SCALAR_H
#define SX_SCALAR_H

#include "types.h"

#include "bits.h"
#include "conversions.h"
#include "double_math.h"
#include "float_basics.h"
#include "float_math.h"
#include "integers.h"
#include "small_floats.h"
#include "wide_math.h"

#endif
