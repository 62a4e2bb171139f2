"""`sardonyx demo`: a digit classifier that ships in the package, taken through everything step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["demo"]

_BOMB = """<ir_version: 8, opset_import: ["" : 17]>
bomb (float[1] x) => (float[N] y) {
    huge = Constant <value = int64[1] {274877906944}> ()
    y = Expand (x, huge)
}"""


def demo() -> None:
    """Take a digit classifier through everything.

    Step by step: loaded, looked into, checked, run, compared, and defended. It needs nothing but the core install, and a few seconds.

    \b
    Example:
        sardonyx demo
    """
    import tempfile

    from sardonyx.cli.console import stdout

    show = _Show(stdout())
    with _shipped() as files, tempfile.TemporaryDirectory(prefix="sardonyx-demo-") as folder:
        show.title()
        model = show.loading(files / "digits.onnx")
        show.inspection(files / "digits.onnx")
        show.checking(files / "digits.onnx")
        show.shapes(model)
        accuracy = show.running(files)
        gap = show.round_trip(model, Path(folder))
        show.second_opinion(model)
        show.refusals(files / "digits.onnx")
        show.summary(accuracy, gap)


@contextmanager
def _shipped() -> Iterator[Path]:
    """The folder of the files that ship in the package, wherever it is installed."""
    from importlib.resources import as_file, files

    with as_file(files("sardonyx") / "data") as folder:
        yield folder


@dataclass
class _Show:
    """Prints the steps: a title, the line of Python that does it, and what came of it."""

    console: Console
    steps: int = 0

    def title(self) -> None:
        from rich.panel import Panel

        text = "A digit classifier from training to answers:\nloaded, explained, proved, run and defended."
        self.console.print(Panel(text, title="Sardonyx", title_align="left", expand=False))

    def step(self, name: str, code: str) -> None:
        from rich.text import Text

        self.steps += 1
        self.console.print()
        self.console.print(Text(f"{self.steps}. {name}", style="bold"))
        self.console.print(Text(f"   >>> {code}", style="green"))

    def say(self, *lines: str | Text) -> None:
        from rich.padding import Padding

        from sardonyx.cli.console import text

        for line in lines:
            content: RenderableType = text(line) if isinstance(line, str) else line
            self.console.print(Padding(content, (0, 0, 0, 3), expand=False))

    def loading(self, path: Path) -> ir.Model:
        import sardonyx as sx
        from sardonyx.inspection.readable import bytes_text

        self.step("Load it, as if a stranger had sent it", 'model = sx.load("digits.onnx")')
        model = sx.load(path)
        self.say(
            f"{bytes_text(path.stat().st_size)}: sizes, structure and every tensor checked before use."
        )
        return model

    def inspection(self, path: Path) -> None:
        import sardonyx as sx
        from sardonyx.cli.console import bar, size_label
        from sardonyx.inspection.readable import bytes_text, count_text

        self.step("Look inside", 'sx.inspect("digits.onnx", dims={"batch": 1})')
        found = sx.inspect(path, dims={"batch": 1})
        self.say(
            f"{found.producer} wrote it, opset {found.opsets['ai.onnx']}: {len(found.nodes)} nodes, "
            f"{count_text(found.parameters)} parameters ({bytes_text(found.weight_bytes)}).",
            f"One image costs {size_label(found.totals.macs, 'MAC')} and moves "
            f"{size_label(found.totals.bytes_read + found.totals.bytes_written, 'B')}; "
            "the most expensive nodes:",
        )
        total = found.totals.macs
        for row in found.most_expensive(3):
            assert isinstance(row.macs, int)
            assert isinstance(total, int)
            share = row.macs / total
            self.say(f"  {row.op:<6} {share:>4.0%} {bar(share, 30, self.console):<30} {row.source}")

    def checking(self, path: Path) -> None:
        import sardonyx as sx

        self.step("Is anything wrong with it?", 'sx.check("digits.onnx")')
        report = sx.check(path)
        counts = report.counts
        self.say(
            f"{'Nothing' if report.ok else 'Yes'}: {counts['error']} errors, {counts['warning']} warnings."
        )
        for finding in report.findings[:3]:
            self.say(f"{finding.severity}: {finding.message}")

    def shapes(self, model: ir.Model) -> None:
        import sardonyx as sx

        self.step("Every shape, for every batch size", "shapes = sx.infer_shapes(model)")
        shapes = sx.infer_shapes(model)
        graph = model.graph
        path = [graph.inputs[0]]
        path += [n.outputs[0] for n in graph if n.op_type in ("Conv", "ReduceMean", "Gemm")]
        self.say(" → ".join(str(shapes.of(value)).removeprefix("float") for value in path))

    def running(self, files: Path) -> float:
        import numpy as np

        import sardonyx as sx
        from sardonyx.cli.console import compiling, progress_bar

        self.step(
            "Run it on 180 images that it never saw",
            'session.run(None, {"images": images})',
        )
        with np.load(files / "digits.npz") as data:
            images, labels = data["images"], data["labels"]
        with progress_bar("opening") as (progress, _):
            session = sx.Session(files / "digits.onnx", progress=compiling(progress))
        (logits,) = session.run(None, {"images": images})
        assert isinstance(logits, np.ndarray)
        guesses = logits.argmax(axis=1)
        right = guesses == labels
        shown = [*np.flatnonzero(right)[:2], *np.flatnonzero(~right)[:1]]
        self.say(*_drawn([images[i, 0] for i in shown], self.console))
        self.say(
            "".join(
                f"{_caption(logits[i], int(labels[i])):<{_WIDTH + _GAP}}" for i in shown
            ).rstrip()
        )
        accuracy = float(right.mean())
        self.say(f"{int(right.sum())} of {len(labels)} right: {accuracy:.1%}.")
        return accuracy

    def round_trip(self, model: ir.Model, folder: Path) -> float:
        import sardonyx as sx

        self.step(
            "Save it, load it, compare: nothing changed",
            'sx.save(model, "copy.onnx"); sx.compare(model, "copy.onnx")',
        )
        sx.save(model, folder / "copy.onnx", external_data="copy.data")
        result = sx.compare(model, folder / "copy.onnx", dims={"batch": 32})
        (output,) = result.outputs
        self.say(
            f"{'The same' if result.ok else 'NOT the same'}, with the weights in a file of their own: "
            f"largest difference {output.max_abs:g} in {output.elements} numbers."
        )
        return output.max_abs

    def second_opinion(self, model: ir.Model) -> None:
        import sardonyx as sx

        self.step(
            "Ask a second engine",
            'sx.compare(model, engines=("sardonyx", "reference"))',
        )
        result = sx.compare(model, engines=("sardonyx", "reference"), dims={"batch": 8})
        (output,) = result.outputs
        self.say(
            f"{'They agree' if result.ok else 'They DIFFER'}: largest difference {output.max_abs:.1g}, "
            f"cosine {output.cosine:.6f}. (With onnxruntime installed, name it instead.)"
        )

    def refusals(self, path: Path) -> None:
        import onnx.parser

        import sardonyx as sx

        self.step("What a hostile model gets", "sx.load(damaged); sx.Session(bomb).run(…)")
        content = path.read_bytes()
        self.say("The same file, cut off in the middle:")
        self._refused(lambda: sx.load(content[: len(content) // 2]))
        size = onnx.parser.parse_model(_BOMB).ByteSize()
        self.say(f"A model of {size} bytes that asks for a terabyte:")
        self._refused(lambda: sx.Session(_BOMB).run(None, {"x": [1.0]}, byte_budget=1 << 30))

    def _refused(self, attempt: Any) -> None:
        from sardonyx.cli.console import text
        from sardonyx.errors import SardonyxError

        try:
            attempt()
        except SardonyxError as error:
            self.say(text(f"  {type(error).__name__}: {error}", "red"))
        else:
            self.say("  accepted, which it should not have been!")

    def summary(self, accuracy: float, gap: float) -> None:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold cyan")
        grid.add_column()
        grid.add_row("Your model", "sardonyx check model.onnx")
        grid.add_row("", "sardonyx inspect model.onnx --dim batch=1")
        grid.add_row("", "sardonyx run model.onnx --random 0")
        grid.add_row("Two engines", "sardonyx compare model.onnx --engines sardonyx,onnxruntime")
        grid.add_row(
            "The standard", "sardonyx conformance   # the official ONNX suite, some minutes"
        )
        grid.add_row("This machine", "sardonyx doctor")
        grid.add_row(
            "In Python", "import sardonyx as sx   # sx.Session is a drop-in for onnxruntime's"
        )
        self.console.print()
        self.console.print(
            Text(
                f"{self.steps} steps, {accuracy:.1%} of the digits read, a copy that differs by {gap:g}, "
                "and two attacks turned away."
            )
        )
        self.console.print(
            Panel(grid, title="Where to look next", title_align="left", expand=False)
        )


_WIDTH, _GAP = 16, 6  # characters of a drawn digit, and between two


def _drawn(images: list[np.ndarray[Any, Any]], console: Console) -> list[str]:
    """Digits side by side, two characters a pixel."""
    shades = " ░▒▓█" if console.encoding.startswith("utf") else " .:+#"
    rows = []
    for row in range(images[0].shape[0]):
        lines = [
            "".join(shades[min(int(ink * len(shades)), len(shades) - 1)] * 2 for ink in image[row])
            for image in images
        ]
        rows.append((" " * _GAP).join(lines).rstrip())
    return rows


def _caption(logits: np.ndarray[Any, Any], label: int) -> str:
    """`It is a 7 (99%)`, or what it took a 7 for."""
    import numpy as np

    chances = np.exp(logits - logits.max())
    guess = int(chances.argmax())
    sure = float(chances[guess] / chances.sum())
    return f"a {guess} ({sure:.0%})" if guess == label else f"a {guess} ({sure:.0%}); no: {label}"
