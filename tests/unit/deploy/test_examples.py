"""The programs of examples/deploy around the digit classifier do what they say."""

from __future__ import annotations

import json
import os
import queue
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
<!doctype html><iframe id="frame" src="index.html#3"></iframe><script>
const tell = (answer) => fetch("told", { method: "POST", body: JSON.stringify(answer) });
addEventListener("error", (event) => tell({ failed: event.message }));
addEventListener("unhandledrejection", (event) => tell({ failed: String(event.reason) }));
</script><script type="module">
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
await tell({ drawn, logits: Array.from(logits), shape: logits.shape, test, digit: page("digit"), status: page("status") });
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


class _Site(ThreadingHTTPServer):
    """A folder, served as any web server would, and what the page in it tells."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Request, directory=folder))
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()


class _Request(SimpleHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Site)
        self.server.told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nobody reads it."""


@pytest.fixture
def site(examples: Path) -> Iterator[_Site]:
    folder = examples / "browser"
    sx.build(DATA / "digits.onnx", folder / "build", emit="wasm", name="digits")
    digits()[0].tofile(folder / "images.raw")
    (folder / "check.html").write_text(CHECK)
    with _Site(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def told_in_chromium(site: _Site, name: str, profile: Path) -> dict[str, Any]:
    """What a page tells its server, waited for by the clock: a headless browser's virtual time
    runs ahead of what it compiles in the background."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed")
    argv = [browser, "--headless", "--no-sandbox", "--disable-gpu"]
    argv += [f"--user-data-dir={profile / 'profile'}", f"{site.address}/{name}"]
    said = profile / "said"
    with said.open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as running:
        try:
            return site.told.get(timeout=200)
        except queue.Empty:
            pytest.fail(f"the page told nothing in 200 s; chromium said:\n{said.read_text()}")
        finally:
            running.kill()


def test_a_drawn_digit_is_classified_in_a_browser(site: _Site, tmp_path: Path) -> None:
    answer = told_in_chromium(site, "check.html", tmp_path)
    assert "failed" not in answer, answer
    assert [int(np.argmax(row)) for row in answer["drawn"]] == list(range(10))
    _, expected = digits()
    assert answer["shape"] == list(expected.shape)
    found = np.array(answer["logits"]).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    assert answer["test"] == []
    assert answer["digit"] == "3"
    assert answer["status"].startswith("Self-test: ok")
