"""Hugging Face models: answers as transformers gives them, and the tokens that its own generation gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.conversions.huggingface_cases import CASES
from benchmarks.conversions.huggingface_models import seeded_model
from tests.conversions.matrix import check_case

import sardonyx as sx
from sardonyx.comparison.engines import open_engine
from sardonyx.conversion.convert import Converted, convert_model
from sardonyx.conversion.request import Request

# One case of every kind; `python -m benchmarks.conversions huggingface` runs them all.
QUICK = (
    "BertModel, vectors for ids, own names",
    "MixtralForCausalLM",
    "ViTForImageClassification",
    "CLIPModel",
    "MambaForCausalLM",
    "BertForSequenceClassification, a folder without its head",
)
# Compiling every model would take minutes, and onnx's own evaluator gets GatherElements on the last axis wrong.
ENGINE = "onnxruntime"
Values = Mapping[str, Any]


@pytest.mark.parametrize("name", QUICK)
def test_case(name: str) -> None:
    check_case(next(case for case in CASES if case.name == name), engine=ENGINE)


def convert(model: Any, **options: Any) -> Converted:
    return convert_model(Request(model, options=options), engine=ENGINE)


def empty_past(session: sx.Session, batch: int) -> dict[str, Any]:
    """No tokens seen, for every input of a cache."""
    found = {}
    for port in session.inputs:
        if port.name.startswith("past_key_values.") and ".encoder." not in port.name:
            heads, width = port.shape[1], port.shape[3]
            found[port.name] = np.zeros((batch, heads, 0, width), np.float32)
    return found


def step(session: sx.Session, feeds: Values) -> tuple[Any, dict[str, Any]]:
    """The scores of the next token of every row, and the past for the next step."""
    names = [port.name for port in session.outputs]
    answers = dict(zip(names, session.run(None, dict(feeds)), strict=True))
    return answers["logits"][:, -1], as_past(answers)


def as_past(answers: Values) -> dict[str, Any]:
    pairs = ((name.replace("present.", "past_key_values."), name) for name in answers)
    return {ours: answers[name] for ours, name in pairs if ours != name}


def generate(session: sx.Session, ids: Any, mask: Any, count: int) -> list[Any]:
    """Greedy generation with a decoder: one call for the prompt, then one for every token; the scores of each."""
    past = empty_past(session, len(ids))
    new, found = ids, []
    positions = np.where(mask == 1, np.cumsum(mask, 1) - 1, 0)
    for _ in range(count):
        feeds = {"input_ids": new, "attention_mask": mask, "position_ids": positions, **past}
        scores, past = step(session, feeds)
        found.append(scores)
        new = scores.argmax(-1)[:, None]
        mask = np.concatenate([mask, np.ones_like(new)], 1)
        positions = positions[:, -1:] + 1
    return found


def check_generated(model: Any, ids: Any, mask: Any, found: list[Any]) -> None:
    """The same tokens as transformers generates, by the same scores."""
    with torch.no_grad():
        expected = model.generate(
            torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            max_new_tokens=len(found),
            do_sample=False,
            eos_token_id=None,
            output_logits=True,
            return_dict_in_generate=True,
        )
    tokens = np.stack([scores.argmax(-1) for scores in found], 1)
    assert tokens.tolist() == expected.sequences[:, -len(found) :].tolist()
    assert len(set(tokens.flat)) > 1  # one that always answers the same would prove nothing
    for ours, theirs in zip(found, expected.logits, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_tokens_of_a_decoder_are_those_of_transformers() -> None:
    """Two prompts, one padded on the left; the window of 5 tokens is left far behind."""
    model = seeded_model("MistralForCausalLM")
    session = sx.Session(convert(model).model)
    ids = np.random.default_rng(1).integers(3, 99, (2, 6))
    mask = np.array([[1] * 6, [0, 0, 1, 1, 1, 1]])
    ids[mask == 0] = model.config.pad_token_id
    check_generated(model, ids, mask, generate(session, ids, mask, 8))


def test_tokens_of_an_encoder_and_its_decoder_are_those_of_transformers() -> None:
    model = seeded_model("T5ForConditionalGeneration")
    encoder = open_engine(ENGINE, convert(model, part="encoder").model)
    decoder = sx.Session(convert(model, part="decoder").model)
    ids = np.random.default_rng(2).integers(3, 99, (2, 12))
    mask = np.array([[1] * 12, [1] * 9 + [0] * 3])
    ids[mask == 0] = model.config.pad_token_id
    cross = as_past(encoder({"input_ids": ids, "attention_mask": mask}))
    new = np.full((2, 1), model.config.decoder_start_token_id)
    past, found = empty_past(decoder, 2), []
    for _ in range(8):
        feeds = {"decoder_input_ids": new, "encoder_attention_mask": mask, **past, **cross}
        scores, past = step(decoder, feeds)
        found.append(scores)
        new = scores.argmax(-1)[:, None]
    check_generated(model, ids, mask, found)


def test_pooled_vectors_are_means_of_what_is_no_padding() -> None:
    """Beside numpy: the conversion itself is held to the same code that it exports."""
    case = next(case for case in CASES if case.name == "BertModel, a folder with mean pooling")
    converted = convert_model(case.request(), engine=ENGINE)
    assert case.check is not None
    case.check(converted)
    feeds = {
        "input_ids": np.array([[5, 6, 7, 0], [8, 9, 10, 11]]),
        "attention_mask": np.array([[1, 1, 1, 0], [1, 1, 1, 1]]),
        "token_type_ids": np.zeros((2, 4), np.int64),
    }
    found = open_engine(ENGINE, converted.model)(feeds)["sentence_embedding"]
    tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}
    with torch.no_grad():
        hidden = seeded_model("BertModel")(**tensors).last_hidden_state.numpy()
    means = np.stack([hidden[0, :3].mean(0), hidden[1].mean(0)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(found), means, rtol=1e-4, atol=1e-6)
