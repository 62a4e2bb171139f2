"""The Hugging Face rows of the conversion matrix."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.conversions.case import Case
from benchmarks.conversions.huggingface_models import seeded_model
from sardonyx.conversion.convert import Converted
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]

# Saved models live as long as the process.
_FOLDERS = tempfile.TemporaryDirectory(prefix="sardonyx-cases-")
_TOTAL = "past_sequence + sequence"


def _case(
    name: str,
    *,
    check: Callable[[Converted], None] | None = None,
    refusal: str = "",
    **options: Any,
) -> Case:
    def request() -> Request:
        return Request(seeded_model(name), options=options)

    told = ", ".join(f"{key} {value}" for key, value in options.items() if value is not True)
    return Case(f"{name}, {told}" if told else name, request, check, refusal)


# ---------------------------------------------------------------- checks beyond the answers


def _axes(converted: Converted, name: str) -> tuple[int | str | None, ...]:
    value = next(v for v in converted.model.graph.inputs if v.name == name)
    assert value.shape is not None
    return tuple(axis if isinstance(axis, int) else axis.value for axis in value.shape)


def _open(name: str, *axes: int | str) -> Callable[[Converted], None]:
    """An input whose axes are these."""

    def check(converted: Converted) -> None:
        assert _axes(converted, name) == axes

    return check


def _past(side: str = "") -> Callable[[Converted], None]:
    """Keys and values of every layer go in and come out, whatever their number of tokens."""

    def check(converted: Converted) -> None:
        inputs = [value.name for value in converted.model.graph.inputs]
        outputs = [value.name for value in converted.model.graph.outputs]
        for what in ("0{}.key", "0{}.value", "1{}.key", "1{}.value"):
            name = f"past_key_values.{what.format(side)}"
            assert name in inputs
            assert f"present.{what.format(side)}" in outputs
            assert _axes(converted, name)[::2] == ("batch", "past_sequence")
        assert outputs[0] == "logits"
        if not side:
            assert _axes(converted, "attention_mask") == ("batch", _TOTAL)
        assert converted.verification is not None
        tried = " ".join(trial.what for trial in converted.verification.trials)
        assert "past_sequence 0" in tried
        assert "past_sequence 1" in tried

    return check


def _cross(converted: Converted) -> None:
    outputs = [value.name for value in converted.model.graph.outputs]
    assert outputs[0] == "last_hidden_state"
    assert outputs[-1] == "present.1.encoder.value"


def _embedding(converted: Converted) -> None:
    assert [value.name for value in converted.model.graph.outputs] == ["sentence_embedding"]


# ---------------------------------------------------------------- folders, and inputs of the user's own


def _folder() -> Request:
    """Saved and opened again, with the pooling that sentence-transformers writes beside a model."""
    folder = Path(tempfile.mkdtemp(dir=_FOLDERS.name))
    seeded_model("BertModel").save_pretrained(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"type": f"sentence_transformers.models.{k}", "path": p} for p, k in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    mode = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(mode))
    return Request(folder)


def _without_a_head() -> Request:
    """The folder's own class has a head that nobody saved."""
    folder = Path(tempfile.mkdtemp(dir=_FOLDERS.name))
    seeded_model("BertModel").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (folder / "config.json").write_text(json.dumps(config))
    return Request(folder)


def _own_inputs() -> Request:
    """Vectors instead of ids, names and opset of the user's own, and two examples of other lengths."""
    generator = np.random.default_rng(3)

    def example(length: int) -> Example:
        vectors = torch.from_numpy(generator.normal(size=(2, length, 32)).astype(np.float32))
        return Example(kwargs={"inputs_embeds": vectors})

    return Request(
        seeded_model("BertModel"),
        (example(6), example(9)),
        input_names=("vectors",),
        output_names=("tokens", "text"),
        opset=21,
    )


def _own_names(converted: Converted) -> None:
    assert _axes(converted, "vectors") == ("batch", "inputs_embeds_1", 32)
    assert [value.name for value in converted.model.graph.outputs] == ["tokens", "text"]
    assert converted.model.graph.opset_imports[""] == 21


def _named_axes() -> Request:
    model = seeded_model("GPT2LMHeadModel")
    return Request(model, dynamic={"input_ids": {0: "N"}, "past_key_values.0.key": {2: "seen"}})


def _one_token(converted: Converted) -> None:
    assert _axes(converted, "input_ids") == ("N", 5)
    assert _axes(converted, "attention_mask") == ("N", "seen + 5")


_T5, _BART, _WHISPER = (f"{n}ForConditionalGeneration" for n in ("T5", "Bart", "Whisper"))

CASES: tuple[Case, ...] = (
    _case("BertModel", check=_open("token_type_ids", "batch", "sequence")),
    _case("DistilBertForSequenceClassification"),
    _case("RobertaForTokenClassification"),
    _case("DebertaV2Model"),
    _case("BertModel", pooling="mean", normalize=True, check=_embedding),
    Case("BertModel, a folder with mean pooling", _folder, _embedding),
    Case("BertModel, vectors for ids, own names", _own_inputs, _own_names),
    _case("GPT2LMHeadModel", check=_past()),
    _case("GPT2LMHeadModel", part="model", check=_open("input_ids", "batch", "sequence")),
    Case("GPT2LMHeadModel, axes as named", _named_axes, _one_token),
    _case("LlamaForCausalLM", check=_past()),
    _case("Qwen2ForCausalLM", check=_past()),
    _case("Qwen3ForCausalLM", check=_past()),
    _case("Qwen3Model", pooling="last", check=_embedding),
    _case("MistralForCausalLM", check=_past()),
    _case("MixtralForCausalLM", check=_past()),
    _case("GemmaForCausalLM", check=_past()),
    _case("Gemma3ForCausalLM", check=_past()),
    _case(_T5),
    _case(_T5, part="encoder", check=_cross),
    _case(_T5, part="decoder", check=_past(".decoder")),
    _case(_BART),
    _case(_BART, part="encoder", check=_cross),
    _case(_BART, part="decoder", check=_past(".decoder")),
    _case(_WHISPER),
    _case(_WHISPER, part="encoder", check=_cross),
    _case(_WHISPER, part="decoder", check=_past(".decoder")),
    _case("ViTForImageClassification", check=_open("pixel_values", "batch", 3, 32, 32)),
    _case("SwinForImageClassification"),
    _case("ConvNextForImageClassification"),
    _case("CLIPModel", check=_open("pixel_values", "image_batch", 3, 32, 32)),
    _case("CLIPModel", part="text"),
    _case("CLIPModel", part="image"),
    _case("Wav2Vec2ForCTC", check=_open("input_values", "batch", "samples")),
    _case("Wav2Vec2ForCTC, padded", check=_open("attention_mask", "batch", "samples")),
    _case("MambaForCausalLM", refusal='options={"part": "model"}'),
    Case(
        "BertForSequenceClassification, a folder without its head",
        _without_a_head,
        None,
        "would be random",
    ),
)
