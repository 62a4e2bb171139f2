"""The programs of examples/deploy around the digit classifier do what they say."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "deploy"
DATA = ROOT / "src" / "sardonyx" / "data"
COMPILERS = {"c": "cc", "cpp": "c++", "rust": "rustc"}

CHECK = """
<!doctype html><pre id="told"></pre><iframe id="frame" src="index.html#3"></iframe><script type="module">
import { load } from "./build/digits.js";
import { EXAMPLES } from "./examples.js";
import { pixelsOf } from "./strokes.js";
const model = await load();
const images = new Float32Array(await (await fetch("images.raw")).arrayBuffer());
const drawn = EXAMPLES.map((strokes) => Array.from(model.run({ images: pixelsOf(strokes) }).logits));
const { logits } = model.run({ images });
const page = (id) => frame.contentDocument?.getElementById(id)?.textContent ?? "";
while (!page("status").startsWith("Self-test")) await new Promise((resolve) => setTimeout(resolve, 50));
const test = await model.selfTest();
told.textContent = JSON.stringify({ drawn, logits: Array.from(logits), shape: logits.shape, test, digit: page("digit"), status: page("status") });
</script>
"""


def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The held-out images, and a Session's logits for them."""
    with np.load(DATA / "digits.npz") as data:
        images = data["images"]
    (logits,) = sx.Session(DATA / "digits.onnx").run(None, {"images": images})
    assert isinstance(logits, np.ndarray)
    return images, logits


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, whose model is built once."""
    folder = tmp_path_factory.mktemp("examples") / "deploy"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("build"))
    return folder


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    argv = ["make", "-s", f"DATA={DATA}", f"PYTHON={sys.executable}", *arguments]
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("language", COMPILERS)
def test_a_program_says_the_digits(language: str, examples: Path) -> None:
    if shutil.which(COMPILERS[language]) is None:
        pytest.skip(f"{COMPILERS[language]} is not installed")
    folder, first = examples / language, examples / "c" / "build"
    if language != "c":
        assert make(first.parent, "build/libdigits.a", "build/images.raw").returncode == 0
        shutil.copytree(first, folder / "build", dirs_exist_ok=True)
    done = make(folder, "run")
    assert done.returncode == 0, done.stderr
    _, logits = digits()
    lines = [line for line in done.stdout.splitlines() if line.isdecimal()]
    assert lines == [str(number) for number in logits.argmax(axis=1)]
    (folder / "short.raw").write_bytes(bytes(100))
    refused = subprocess.run(
        [folder / "build" / "classify", folder / "short.raw"], capture_output=True, check=False
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith(b"classify: ")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nobody reads it."""


@pytest.fixture
def page(examples: Path) -> Iterator[str]:
    """The address of the folder with the page, served as any web server would."""
    folder = examples / "browser"
    sx.build(DATA / "digits.onnx", folder / "build", emit="wasm", name="digits")
    digits()[0].tofile(folder / "images.raw")
    (folder / "check.html").write_text(CHECK)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def shown_by_chromium(address: str, profile: Path) -> str:
    """The page as a browser has it when its scripts are done."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed")
    argv = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    argv += ["--virtual-time-budget=20000", "--dump-dom", address]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=200).stdout


def test_a_drawn_digit_is_classified_in_a_browser(page: str, tmp_path: Path) -> None:
    told = re.search(
        r'<pre id="told">(.+?)</pre>', shown_by_chromium(f"{page}/check.html", tmp_path)
    )
    assert told is not None
    answer = json.loads(html.unescape(told[1]))
    assert [int(np.argmax(row)) for row in answer["drawn"]] == list(range(10))
    _, expected = digits()
    assert answer["shape"] == list(expected.shape)
    found = np.array(answer["logits"]).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    assert answer["test"] == []
    assert answer["digit"] == "3"
    assert answer["status"].startswith("Self-test: ok")
