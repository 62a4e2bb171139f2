"""docs/benchmarks.md and its pictures, from the numbers that the benchmarks wrote.

    python -m benchmarks.peers --beside onnxruntime openvino torch --json build/speed-2.json
    python -m benchmarks.peers --threads 1 --json build/speed-1.json
    python -m benchmarks.tuning --json build/tuning.json
    python -m benchmarks.quantized --folder build/int8 --json build/quantized.json
    python -m benchmarks.peers --start-up --json build/start-up.json
    python -m benchmarks.accuracy --json build/accuracy.json
    python -m benchmarks.real_models --json build/real.json
    python -m benchmarks.page build/speed-2.json build/speed-1.json build/start-up.json build/accuracy.json build/real.json

Every file tells by itself what was measured, on which machine. The page holds what it is given and nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
HEAD = """# Benchmarks

Written by `python -m benchmarks.page` from the files that the benchmarks write (`--json`); its text says how to
make them. Engines take turns in one process, in blocks with pauses between them; a number is our time over the
peer's, the median over the rounds, with the lowest and the highest: **under 1, Sardonyx is faster**.
"""
MEGABYTE = 1 << 20
BANDS = (0.0, 0.5, 0.8, 1.1, 1.5, float("inf"))  # of ratios of operators

# The chart: one row a model, one bar a peer, on a scale from 0 to LIMIT times the peer's time.
ROW, BAR, LEFT, WIDTH, LIMIT = 13, 10, 190, 520, 1.5
COLOURS = ("#4269d0", "#efb118", "#3ca951", "#9c6b4e", "#97bbf5")

Result = Mapping[str, Any]


def speed_section(content: Result, picture: str) -> str:
    rows, peers = content["results"], peers_of(content["results"])
    lines = [f"| model | ms | {' | '.join(f'× {peer}' for peer in peers)} |"]
    lines.append(f"|---|--:|{'--:|' * len(peers)}")
    for row in rows:
        own = next(seconds for name, seconds in row["seconds"].items() if name not in peers)
        cells = [ratio_text(row["ratios"].get(peer)) for peer in peers]
        lines.append(
            f"| {row['model']} | {digits(statistics.median(own) * 1e3)} | {' | '.join(cells)} |"
        )
    for group in dict.fromkeys(row["group"] for row in rows):
        means = [mean_of([row for row in rows if row["group"] == group], peer) for peer in peers]
        lines.append(f"| **geometric mean, {group}** | | {' | '.join(means)} |")
    return "\n".join([f"![our time over the peers']({picture})", "", *lines])


def digits(number: float) -> str:
    """Three of them, and all in front of the point."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def peers_of(rows: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(peer for row in rows for peer in row["ratios"]))


def ratio_text(ratio: Mapping[str, float] | None) -> str:
    if ratio is None:
        return "–"
    return f"{ratio['median']:.2f} ({ratio['lowest']:.2f} … {ratio['highest']:.2f})"


def mean_of(rows: Sequence[Result], peer: str) -> str:
    ratios = [row["ratios"][peer]["median"] for row in rows if peer in row["ratios"]]
    return f"**{statistics.geometric_mean(ratios):.2f}**" if ratios else "–"


def start_up_section(content: Result) -> str:
    lines = [
        "| model | cold compile, s | open, ms | onnxruntime | with first run, ms | onnxruntime | × | peak, MB | onnxruntime | import, ms | onnxruntime |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in content["results"]:
        both = (row["sardonyx"], row["onnxruntime"])
        opened = [statistics.median(o["seconds"] for o in each) * 1e3 for each in both]
        first = [statistics.median(o["seconds"] + o["first"] for o in each) * 1e3 for each in both]
        peak = [max(o["peak"] for o in each) / MEGABYTE for each in both]
        cells = [row["model"], f"{row['cold']['seconds']:.1f}", *(f"{t:.1f}" for t in opened)]
        cells += [*(f"{t:.1f}" for t in first), f"{first[0] / first[1]:.2f}"]
        cells += [f"{size:.0f}" for size in peak]
        cells += [f"{statistics.median(o['imports'] for o in each) * 1e3:.0f}" for each in both]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def tuning_section(content: Result) -> str:
    lines = ["| model | untuned, ms | tuned × |", "|---|--:|--:|"]
    for row in content["results"]:
        plain = statistics.median(row["seconds"]["plain"]) * 1e3
        lines.append(f"| {row['model']} | {digits(plain)} | {ratio_text(row['ratio'])} |")
    return "\n".join(lines)


def quantized_section(content: Result) -> str:
    peers = list(content["results"][0]["ratios"])
    lines = [
        f"| model | ms | {' | '.join(f'× {peer}' for peer in peers)} | bytes × float32's | cosine |",
        f"|---|--:|{'--:|' * len(peers)}--:|--:|",
    ]
    for row in content["results"]:
        own = statistics.median(row["seconds"]["ours, INT8"]) * 1e3
        cells = [row["model"], digits(own), *(ratio_text(row["ratios"].get(p)) for p in peers)]
        lines.append(f"| {' | '.join(cells)} | {row['bytes']:.3f} | {row['cosine']:.4f} |")
    return "\n".join(lines)


def accuracy_section(content: Result) -> str:
    rows = content["results"]
    engines = list(dict.fromkeys(engine for row in rows for engine in row["errors"]))
    lines = [
        "The root mean square of the errors against the same model in float64, as part of that of the outputs, "
        "and in brackets over onnxruntime's: **under 1, nearer to the truth**. The median over several inputs.",
        "",
        f"| model | {' | '.join(engines)} |",
        f"|---|{'--:|' * len(engines)}",
    ]
    for row in rows:
        cells = [error_text(row["errors"].get(engine)) for engine in engines]
        lines.append(f"| {row['model']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def error_text(errors: Mapping[str, Any] | None) -> str:
    if errors is None:
        return "–"
    ratio = errors["ratio"]
    # What is rounded to bfloat16 is thousands of times further off: no ratio says more than the error.
    said = "" if ratio is None or ratio > 100 else f" ({ratio:.2f})"
    return f"{errors['mean']:.1e}{said}"


def real_section(content: Result) -> str:
    rows = [row for row in content["results"] if row["ratio"] is not None]
    ratios = [row["ratio"]["median"] for row in rows]
    lines = ["| model | case | native | agrees | × onnxruntime |", "|---|---|---|---|--:|"]
    for row in content["results"]:
        words = ["no" if bad else "yes" for bad in (row["reference"], row["wrong"])]
        lines.append(
            f"| {row['model']} | {row['case']} | {' | '.join(words)} | {ratio_text(row['ratio'])} |"
        )
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines.append(f"| **geometric mean, highest** | | | | **{mean:.2f}, {max(ratios):.2f}** |")
    return "\n".join(lines)


def operators_section(content: Result) -> str:
    """How many take how long, and those that take longer than the peer's."""
    rows = sorted(
        (row for row in content["results"] if row["ratio"] is not None),
        key=lambda row: -row["ratio"]["median"],
    )
    ratios = [row["ratio"]["median"] for row in rows]
    bands = [sum(low <= ratio < high for ratio in ratios) for low, high in pairwise(BANDS)]
    lines = [
        f"{len(ratios)} operators one by one, at sizes that models have (`python -m benchmarks.operators`): "
        f"geometric mean **{statistics.geometric_mean(ratios):.2f}** × onnxruntime.",
        "",
        "| under 0.5 | to 0.8 | to 1.1 | to 1.5 | above |",
        "|--:|--:|--:|--:|--:|",
        f"| {' | '.join(map(str, bands))} |",
        "",
        "| above 1.1: inputs, and the node; capitals are constants | µs | × onnxruntime |",
        "|---|--:|--:|",
    ]
    lines += [
        f"| `{row['case']}` | {1e6 * row['ours']:.0f} | {ratio_text(row['ratio'])} |"
        for row in rows
        if row["ratio"]["median"] > BANDS[3]
    ]
    return "\n".join(lines)


def chart(rows: Sequence[Result], title: str) -> str:
    """Bars as SVG; a line at 1, where both are level."""
    peers = peers_of(rows)
    step = ROW * len(peers) + 10
    height = 46 + step * len(rows)

    def x(ratio: float) -> float:
        return LEFT + min(ratio, LIMIT) / LIMIT * WIDTH

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 70} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for number, peer in enumerate(peers):
        at = LEFT + number * 130
        parts.append(
            f'<rect x="{at}" y="24" width="10" height="10" fill="{COLOURS[number % 5]}"/>'
            f'<text x="{at + 14}" y="33">{escape(peer)}</text>'
        )
    for number, row in enumerate(rows):
        top = 44 + number * step
        parts.append(
            f'<text x="{LEFT - 8}" y="{top + BAR}" text-anchor="end">{escape(row["model"])}</text>'
        )
        for place, peer in enumerate(peers):
            ratio = row["ratios"].get(peer)
            if ratio is not None:
                end, y = x(ratio["median"]), top + place * ROW
                parts.append(
                    f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" '
                    f'fill="{COLOURS[place % 5]}"/>'
                    f'<text x="{end + 4:.1f}" y="{y + BAR - 1}" font-size="10">{ratio["median"]:.2f}</text>'
                )
    level = x(1.0)
    parts.append(
        f'<line x1="{level}" y1="38" x2="{level}" y2="{height}" stroke="#666666" stroke-dasharray="4 3"/>'
    )
    return "\n".join([*parts, "</svg>", ""])


SECTIONS: Mapping[str, Callable[[Result], str]] = {
    "start-up": start_up_section,
    "accuracy": accuracy_section,
    "real": real_section,
    "operators": operators_section,
    "tuning": tuning_section,
    "quantized": quantized_section,
}


def page(contents: Sequence[Result]) -> tuple[str, dict[str, str]]:
    """The page, and its pictures by name."""
    sections, pictures = [HEAD], {}
    for content in contents:
        machine = content["machine"]
        kind = content["kind"]
        threads = "1 thread" if machine["threads"] == "1" else f"{machine['threads']} threads"
        title = {
            "speed": f"Speed, batch 1, {threads}: {content.get('ours', '')}",
            "start-up": "Start-up and memory, from the cache of compiled models",
            "accuracy": "Accuracy, against float64"
            + (", trained models" if content.get("real") else ""),
            "quantized": f"INT8, batch 1, {threads}: the file of {content.get('by', '')}'s quantizer in every engine",
            "tuning": "Tuned and untuned (`Session(tune=True)`)",
            "real": f"Trained models from packages, {threads}",
            "operators": f"Operators alone, {threads}",
        }[kind]
        if kind == "speed":
            name = f"benchmarks-{content['ours'].replace(' ', '-')}-{machine['threads']}.svg"
            body = speed_section(content, name)
            pictures[name] = chart(content["results"], title)
        else:
            body = SECTIONS[kind](content)
        said = f"{machine['cpu']}. {machine['system']}. {machine['engines']}."
        sections.append(f"## {title}\n\n{said}\n\n{body}\n")
    return "\n".join(sections), pictures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="what the benchmarks wrote")
    text, pictures = page(
        [json.loads(path.read_text("utf-8")) for path in parser.parse_args().files]
    )
    (DOCS / "benchmarks.md").write_text(text, encoding="utf-8")
    for name, picture in pictures.items():
        (DOCS / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
