"""Where the rows of a convolution's tile lie: windows over an image, channels last, as C text.

Every row of a tile is an output pixel, and has a pointer for every segment of K: a tap of the window, or a whole row of it.
Most tiles are a run of pixels on one line of the image, whose windows cover no padding on either side:

    in line     a pointer for every segment, and the other rows lie a stride behind each other
    else        every pixel by itself: where its window begins, which taps are inside
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sardonyx.backends.c.kernels.elements import sum_type
from sardonyx.backends.c.kernels.nest import Extent, indented
from sardonyx.backends.c.kernels.tile import point_rows
from sardonyx.plan.kernels import Ending

NARROW = 16  # channels: with fewer than 8, copying wins (3: by a third); from 16 on, pointing does


@dataclass(frozen=True)
class Window:
    """How a kernel moves over an image of one to three dimensions; one number an axis.

    Sizes of images may be C text over the kernel's size symbols.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    input: tuple[Extent, ...]
    output: tuple[Extent, ...]

    @property
    def pixels(self) -> Extent:
        """Output pixels of an image."""
        if all(isinstance(size, int) for size in self.output):
            return prod(size for size in self.output if isinstance(size, int))
        return " * ".join(f"(int64_t)({size})" for size in self.output)


@dataclass(frozen=True)
class ConvSpec:
    """`a` and `b` are the element types of activations and packed weights.

    Attributes:
        copies: whether activations are copied to the stack; None for where a rule says so. Those of another type than the
            sums always are, unless they are multiplied as such.
        in_halves: whether activations of float16 are multiplied as such.
        ending: what becomes of sums of float16, which stay such then; only of kernels in float16.
    """

    images: Extent
    channels: int
    filters: int
    window: Window
    groups: int = 1
    a: str = "f32"
    b: str = "f32"
    copies: bool | None = None
    in_halves: bool = False
    ending: Ending | None = None

    @property
    def wide(self) -> bool:
        """Whether the tile reads activations where they lie."""
        few = self.channels // self.groups < NARROW if self.copies is None else self.copies
        return (self.in_halves or self.a == sum_type(self.b)) and not few

    @property
    def pointwise(self) -> bool:
        """Whether an output pixel is made of the input pixel in its place."""
        window = self.window
        ones = {*window.kernel, *window.strides} == {1}
        return ones and not any(window.pads_begin) and window.input == window.output


def steps_text(name: str, window: Window, stepped: int, segments: int) -> str:
    """C text: how far each segment lies from the window's corner, along each of the first axes."""
    lines = []
    for axis in range(stepped):
        inner = prod(window.kernel[axis + 1 : stepped])
        steps = [
            str(tap // inner % window.kernel[axis] * window.dilations[axis])
            for tap in range(segments)
        ]
        lines.append(f"static const int32_t {name}_steps{axis}[] = {{{', '.join(steps)}}};")
    return "\n".join(lines)


def sizes_text(window: Window) -> str:
    """The image sizes as C variables: size0 … and out0 …."""
    axes = range(len(window.kernel))
    sizes = "".join(f"const int64_t size{d} = {window.input[d]};\n" for d in axes)
    # The first output size is never divided by.
    return sizes + "".join(f"const int64_t out{d} = {window.output[d]};\n" for d in list(axes)[1:])


def image_text(spec: ConvSpec, element: str) -> str:
    """The image that a task reads, as the C variable `image`: its group's channels."""
    axes = " * ".join(f"size{axis}" for axis in range(len(spec.window.kernel)))
    return f"const {element} *image = (const {element} *)job->a + b / {spec.groups} * ({axes}) * {spec.channels} + b % {spec.groups} * {spec.channels // spec.groups};"


def corner(spec: ConvSpec, element: str) -> str:
    """`image`, and the beginning of a loop over a tile's rows: p0 … is where the first tap of the pixel's window lies."""
    return f"""\
{image_text(spec, element)}
for (int64_t r = 0; r < taken; r++) {{
{_corner_of(spec.window, "m + r")}"""


def _corner_of(window: Window, number: str) -> str:
    """C text: p0 … of the window of an output pixel, by its number."""
    lines = [f"int64_t pixel = {number};"]
    for axis in reversed(range(len(window.kernel))):
        place = f"pixel % out{axis}" if axis else "pixel"
        lines.append(
            f"const int64_t p{axis} = {place} * {window.strides[axis]} - {window.pads_begin[axis]};"
        )
        if axis:
            lines.append(f"pixel /= out{axis};")
    return "\n".join(f"    {line}" for line in lines)


def in_line(
    spec: ConvSpec, name: str, element: str, zeros: str, otherwise: str, *, whole_rows: bool = False
) -> str:
    """C text that sets rows[s][r]: a pointer a segment where the tile's pixels are in line, what `otherwise` does elsewhere.

    Args:
        name: of the kernel, whose steps `steps_text` has.
        zeros: what is read for a segment outside of the image.
        otherwise: C text for any tile, which begins with `corner`.
        whole_rows: a segment is a row of the window, not a tap.
    """
    window, axes = spec.window, list(range(len(spec.window.kernel)))
    *outer, last = axes
    places = position(name, axes)
    if whole_rows:
        places = f"{position(name, outer)} const int64_t i{last} = p{last};".lstrip()
    reach = (window.kernel[-1] - 1) * window.dilations[-1] + 1
    stride = window.strides[-1]
    together = f"(m % out{last} + taken <= out{last}) & " if outer else ""
    return f"""\
{{
    int32_t in_line;
    {{
{indented(_corner_of(window, "m"), 4)}\
        in_line = {together}(p{last} >= 0) & (p{last} + (taken - 1) * {stride} + {reach} <= size{last});
        if (in_line) {{
            {image_text(spec, element)}
            for (int64_t s = 0; s < segments; s++) {{
                {places}
                const int32_t inside = {inside(outer)};
                const {element} *from = inside ? image + {offset(axes)} * {spec.channels} + k0 : {zeros};
                const int64_t apart = inside ? {stride * spec.channels} : 0;
{indented(point_rows("from", "apart", "s"), 16)}            }}
        }}
    }}
    if (!in_line) {{
{indented(otherwise, 8)}    }}
}}
"""


def within(window: Window, axes: list[int], more: str = "0") -> str:
    """C text: whether all of the window at p0 … is inside of the image, and so many pixels more to its right."""
    found = []
    for axis in axes:
        end = str((window.kernel[axis] - 1) * window.dilations[axis])
        end = f"{end} + {more}" if axis == len(window.kernel) - 1 and more != "0" else end
        found.append(f"(p{axis} >= 0) & (p{axis} + {end} < size{axis})")
    return " & ".join(found)


def offsets_text(name: str, spec: ConvSpec, segments: int, stepped: int) -> str:
    """C text: `offsets`, how many values each segment is from the first one; segments are places of so many axes."""
    steps = "0"
    for axis in range(len(spec.window.kernel)):
        step = f"{name}_steps{axis}[s]" if axis < stepped else "0"
        steps = f"({steps} * size{axis} + {step})" if axis else step
    return f"""\
int64_t offsets[{segments}];
for (int64_t s = 0; s < {segments}; s++)
    offsets[s] = {steps} * {spec.channels};
"""


def line_text(spec: ConvSpec, element: str) -> str:
    """C text that sets `lies` where the tile's pixels are in line and no window reaches over the image, and then line[s]."""
    window, axes = spec.window, list(range(len(spec.window.kernel)))
    together = f" & (m % out{axes[-1]} + taken <= out{axes[-1]})" if len(axes) > 1 else ""
    return f"""\
{{
{indented(_corner_of(window, "m"), 0)}\
    lies = {within(window, axes, f"(taken - 1) * {window.strides[-1]}")}{together};
    if (lies) {{
        {image_text(spec, element)}
        for (int64_t s = 0; s < segments; s++)
            line[s] = image + {offset(axes, "p")} * {spec.channels} + k0 + offsets[s0 + s];
    }}
}}
"""


def pixels(spec: ConvSpec, element: str) -> str:
    """As `corner` with all that is in its loop, where the window is a single pixel: they lie side by side."""
    axes = " * ".join(f"size{axis}" for axis in range(len(spec.window.kernel)))
    return f"""\
const {element} *image = (const {element} *)job->a + (b / {spec.groups} * ({axes}) + m) * {spec.channels} + b % {spec.groups} * {spec.channels // spec.groups} + k0;
{point_rows("image", str(spec.channels))}"""


def position(name: str, axes: list[int]) -> str:
    return " ".join(f"const int64_t i{d} = p{d} + {name}_steps{d}[s0 + s];" for d in axes)


def inside(axes: list[int]) -> str:
    # One comparison does for both ends: a negative place is a huge unsigned one.
    return " & ".join(f"((uint64_t)i{d} < (uint64_t)size{d})" for d in axes) or "1"


def offset(axes: list[int], place: str = "i") -> str:
    """The pixel (i0, i1, …) as an offset in pixels."""
    text = f"{place}{axes[0]}"
    for axis in axes[1:]:
        text = f"({text} * size{axis} + {place}{axis})"
    return text
