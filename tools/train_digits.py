"""Train the digit classifier that ships in the package, and write it with its test images.

    python tools/train_digits.py            # writes src/sardonyx/data/digits.onnx and digits.npz

The data is the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak; UCI,
CC BY 4.0), which scikit-learn carries: 1,797 images of 8×8 pixels. Nothing is downloaded, and the same
versions of torch and scikit-learn write the same files.
"""

from __future__ import annotations

import argparse
import logging
import re
import warnings
from pathlib import Path

import numpy as np
import onnx_ir as ir
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "sardonyx" / "data"
HELD_OUT = 180
EPOCHS = 60
SEED = 0


class DigitNet(nn.Module):
    """Three convolutions, each normalised, then the mean of every feature map: [batch, 1, 8, 8] → [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 24, 3, padding=1, stride=2)
        self.norm2 = nn.BatchNorm2d(24)
        self.conv3 = nn.Conv2d(24, 24, 3, padding=1)
        self.norm3 = nn.BatchNorm2d(24)
        self.head = nn.Linear(24, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.norm1(self.conv1(images)).relu()
        x = self.norm2(self.conv2(x)).relu()
        x = self.norm3(self.conv3(x)).relu()
        return self.head(x.mean((2, 3)))


def split_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images to learn and to test, then their labels; pixels from 0 to 1, every digit in both parts."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    learn, test, learn_labels, test_labels = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels
    )
    return learn, test, learn_labels, test_labels


def train(images: Tensor, labels: Tensor) -> DigitNet:
    torch.manual_seed(SEED)
    net = DigitNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
        schedule.step()
    return net.eval()


def export(net: DigitNet, accuracy: float) -> ir.Model:
    """The network as ONNX: any batch size, BatchNormalization kept as it was trained."""
    program = torch.onnx.export(
        net,
        (torch.zeros(2, 1, 8, 8),),
        input_names=["images"],
        output_names=["logits"],
        opset_version=20,
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        optimize=False,  # it would fold the normalisation into the convolutions
        verbose=False,
    )
    assert program is not None
    model = program.model
    model.doc_string = (
        "Which digit is it? 8×8 grey images, ink from 0 to 1, to the logits of ten classes."
    )
    model.metadata_props.update(
        {
            "data": "Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak; UCI, CC BY 4.0)",
            "held_out_accuracy": f"{accuracy:.4f}",
            "trained_by": "tools/train_digits.py",
        }
    )
    for node in model.graph.all_nodes():
        for key, text in node.metadata_props.items():
            node.metadata_props[key] = without_machine_paths(text)
    return model


def without_machine_paths(text: str) -> str:
    """Source lines as a reader of the repository knows them: `tools/…`, `site-packages/torch/…`."""
    text = re.sub(r'"[^"\n]*/(?=site-packages/)', '"', text)
    return text.replace(f"{ROOT.as_posix()}/", "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Train the digit classifier of the demo; write digits.onnx and digits.npz.",
        epilog="example: python tools/train_digits.py --out build/digits",
    )
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write into")
    out = parser.parse_args().out
    warnings.simplefilter("ignore")  # torch's exporter warns of its own internals
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)  # more would sum in another order, and end in other weights
    images, test_images, labels, test_labels = split_digits()
    net = train(torch.from_numpy(images), torch.from_numpy(labels))
    with torch.no_grad():
        found = net(torch.from_numpy(test_images)).argmax(1).numpy()
    accuracy = float((found == test_labels).mean())
    out.mkdir(parents=True, exist_ok=True)
    ir.save(export(net, accuracy), out / "digits.onnx")
    np.savez_compressed(out / "digits.npz", images=test_images, labels=test_labels)
    for name in ("digits.onnx", "digits.npz"):
        print(f"{name}: {(out / name).stat().st_size / 1000:.1f} kB")
    print(f"accuracy on {len(test_labels)} held-out images: {accuracy:.2%}")


if __name__ == "__main__":
    main()
