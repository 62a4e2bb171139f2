"""Matrix products: MatMul and its integer kin, Gemm, Einsum."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ops.broadcast import broadcast_dim, broadcast_shapes
from sardonyx.ops.call import Call
from sardonyx.ops.costs import Cost, moved
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts, Shape
from sardonyx.ops.lowering import Site
from sardonyx.ops.lowerings import products, quantized
from sardonyx.ops.lowerings.einsum import Parsed, einsum_product
from sardonyx.sizes import Size, product

__all__ = ["OPERATORS"]


def matmul_shape(call: Call, a: Shape | None, b: Shape | None) -> Shape | None:
    """numpy's rules: vectors gain a dimension of 1 that the result loses again."""
    if a is None or b is None:
        return None
    if not a or not b:
        call.fail("a factor is a scalar; matrices or vectors are needed")
    rows, inner_a = (a[-2:-1], a[-1])
    inner_b = b[-2] if len(b) > 1 else b[0]
    call.agree(inner_a, inner_b, "the inner dimensions of the factors")
    batch = broadcast_shapes(call, [a[:-2], b[:-2]])
    return None if batch is None else (*batch, *rows, *(b[-1:] if len(b) > 1 else ()))


def matmul(call: Call) -> list[Facts]:
    return [call.out(matmul_shape(call, call.input(0).shape, call.input(1).shape))]


def matmul_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    return _times_inner(call, outputs, call.shape(0))


def qlinear_matmul(call: Call) -> list[Facts]:
    return [call.out(matmul_shape(call, call.input(0).shape, call.input(3).shape))]


def _times_inner(call: Call, outputs: Sequence[Facts], a: Shape | None) -> Cost:
    count = outputs[0].elements
    macs = None if count is None or not a else count * a[-1]
    return moved(call.inputs, outputs, macs=macs)


def gemm(call: Call) -> list[Facts]:
    a, b = call.need_rank(0, 2), call.need_rank(1, 2)
    if a is None or b is None:
        return [call.out(call.fresh_shape(2))]
    rows, inner = (a[1], a[0]) if call.int_attr("transA") else a
    other, columns = (b[1], b[0]) if call.int_attr("transB") else b
    call.agree(inner, other, "the inner dimensions of A and B")
    shape: Shape = (rows, columns)
    bias = call.shape(2)
    if bias is not None and call.version >= 7:
        joined = broadcast_shapes(call, [shape, bias])
        known = all(isinstance(dim, int) for dim in (*shape, *bias))
        if joined is not None and (len(bias) > 2 or (known and joined != shape)):
            call.fail(f"C of shape {list(map(str, bias))} does not broadcast to the result")
    return [call.out(shape)]


def gemm_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    count, a = outputs[0].elements, call.shape(0)
    if count is None or a is None:
        return moved(call.inputs, outputs, macs=None, flops=None)
    inner = a[0] if call.int_attr("transA") else a[1]
    flops: Size = count if call.has(2) else 0
    return moved(call.inputs, outputs, macs=count * inner, flops=flops)


def parse_einsum(call: Call) -> tuple[list[str], str, dict[str, Size], list[Shape]] | None:
    """Input terms, the output term, sizes by letter, and each input's dimensions under `...`."""
    equation = call.str_attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs):
        call.fail(f"equation {equation!r} has {len(terms)} terms for {len(call.inputs)} inputs")
    if any(facts is None or facts.shape is None for facts in call.inputs):
        return None
    sizes: dict[str, Size] = {}
    hidden: list[Shape] = []
    for index, term in enumerate(terms):
        shape = call.input(index).shape or ()
        hidden.append(_bind_term(call, term, shape, sizes))
    if not arrow:
        letters = sorted(set(left) - set(",."))
        single = [letter for letter in letters if left.count(letter) == 1]
        right = ("..." if "..." in left else "") + "".join(single)
    unknown = set(right.replace("...", "")) - set(sizes)
    if unknown:
        call.fail(
            f"equation {equation!r} puts out {', '.join(sorted(unknown))}, which no input has"
        )
    if len(set(right.replace("...", ""))) != len(right.replace("...", "")):
        call.fail(f"equation {equation!r} puts out one label twice")
    return terms, right, sizes, hidden


def _bind_term(call: Call, term: str, shape: Shape, sizes: dict[str, Size]) -> Shape:
    """Give every letter of one input's term its size; return what `...` covers."""
    before, dots, after = term.partition("...")
    letters = before + after
    if not all(letter.isalpha() for letter in letters):
        call.fail(f"einsum term {term!r} has labels that are not letters")
    covered = len(shape) - len(letters)
    if covered < 0 or (covered and not dots):
        call.fail(f"einsum term {term!r} does not fit an input of rank {len(shape)}")
    dims = (*shape[: len(before)], *shape[len(before) + covered :])
    for letter, dim in zip(letters, dims, strict=True):
        try:
            sizes[letter] = broadcast_dim(sizes.get(letter, 1), dim)
        except ValueError:
            call.fail(
                f"einsum label {letter!r} is {sizes[letter]} in one input and {dim} in another"
            )
    return shape[len(before) : len(before) + covered]


def einsum(call: Call) -> list[Facts]:
    parsed = parse_einsum(call)
    if parsed is None:
        return [call.out(None)]
    _, right, sizes, hidden = parsed
    before, dots, after = right.partition("...")
    covered = broadcast_shapes(call, hidden) or ()
    shape = (
        *(sizes[letter] for letter in before),
        *(covered if dots else ()),
        *(sizes[letter] for letter in after),
    )
    return [call.out(shape)]


def einsum_cost(call: Call, outputs: Sequence[Facts]) -> Cost:
    """One multiply-accumulate for each point of the index space and each input past the first."""
    parsed = parse_einsum(call)
    if parsed is None:
        return moved(call.inputs, outputs, macs=None)
    _, _, sizes, hidden = parsed
    space = product((*sizes.values(), *(broadcast_shapes(call, hidden) or ())))
    if len(call.inputs) == 1:
        return moved(call.inputs, outputs, flops=space)
    return moved(call.inputs, outputs, macs=space * (len(call.inputs) - 1))


def einsum_parsed(site: Site) -> Parsed:
    """The equation, for the lowering."""
    parsed = parse_einsum(site.call)
    if parsed is None:
        site.refuse("the rank of an operand is not known before it runs")
    terms, result, sizes, hidden = parsed
    return terms, result, sizes, broadcast_shapes(site.call, hidden) or ()


OPERATORS = (
    Operator("MatMul", "contraction", matmul, None, matmul_cost, products.MATMUL),
    Operator("MatMulInteger", "contraction", matmul, None, matmul_cost, quantized.MATMUL_INTEGER),
    Operator(
        "QLinearMatMul", "contraction", qlinear_matmul, None, matmul_cost, quantized.QLINEAR_MATMUL
    ),
    Operator("Gemm", "contraction", gemm, None, gemm_cost, products.GEMM),
    Operator("Einsum", "contraction", einsum, None, einsum_cost, einsum_product(einsum_parsed)),
)
