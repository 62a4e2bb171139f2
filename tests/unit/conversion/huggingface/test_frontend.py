"""What is known of a model before anything is exported: its kind, its inputs, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from benchmarks.conversions.huggingface_models import MODELS, seeded_model

from sardonyx.conversion.huggingface.attention import exportable
from sardonyx.conversion.huggingface.examples import Input, draw_feeds, mask, positions, tokens
from sardonyx.conversion.huggingface.folders import open_folder
from sardonyx.conversion.huggingface.past import build_cache, past_names
from sardonyx.conversion.huggingface.subject import open_subject
from sardonyx.conversion.huggingface.tasks import check_model, kind_of
from sardonyx.conversion.request import Example, Request
from sardonyx.errors import ConvertError, InputError

KINDS = {
    "BertModel": "text",
    "RobertaForTokenClassification": "text",
    "GPT2LMHeadModel": "decoder",
    "MambaForCausalLM": "decoder",
    "T5ForConditionalGeneration": "encoder-decoder",
    "WhisperForConditionalGeneration": "encoder-decoder",
    "SwinForImageClassification": "vision",
    "CLIPModel": "dual",
    "Wav2Vec2ForCTC": "speech",
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str) -> None:
    assert kind_of(MODELS[name]().eval()) == KINDS[name]


def test_drawn_inputs_fit_together() -> None:
    inputs = (
        Input("input_ids", ("batch", "sequence"), tokens(50, 7, left=True)),
        Input("attention_mask", ("batch", "past_sequence + sequence"), mask(left=True)),
        Input("position_ids", ("batch", "sequence"), positions),
    )
    feeds = draw_feeds(inputs, {"batch": 4, "sequence": 3, "past_sequence": 2}, 0)
    assert feeds["attention_mask"].tolist() == [
        [1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1],
        [0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    assert feeds["position_ids"].tolist() == [[2, 3, 4], [1, 2, 3], [0, 1, 2], [0, 0, 1]]
    assert ((feeds["input_ids"] == 7) == (feeds["attention_mask"][:, 2:] == 0)).all()
    again = draw_feeds(inputs, {"batch": 4, "sequence": 3, "past_sequence": 2}, 0)
    assert np.array_equal(feeds["input_ids"], again["input_ids"])
    other = draw_feeds(inputs, {"batch": 4, "sequence": 3, "past_sequence": 2}, 1)
    assert not np.array_equal(feeds["input_ids"], other["input_ids"])


@pytest.mark.parametrize("exporting", [False, True])
def test_a_cache_of_named_tensors(exporting: bool) -> None:
    tensors = {name: torch.zeros(2, 4, 3, 8) for name in past_names(2)}
    cache = build_cache(tensors, exporting=exporting)
    assert cache is not None
    assert cache.get_seq_length() == 3
    keys, _ = cache.update(torch.ones(2, 4, 1, 8), torch.ones(2, 4, 1, 8), 1)
    assert keys.shape == (2, 4, 4, 8)
    empty = build_cache(
        {name: torch.zeros(2, 4, 0, 8) for name in past_names(1)}, exporting=exporting
    )
    assert empty is not None
    assert empty.get_seq_length() == 0
    assert build_cache({}, exporting=exporting) is None


def subject(name: str, *examples: Example, **asked: Any) -> Any:
    return open_subject(Request(seeded_model(name), examples, **asked))


def test_the_inputs_are_those_of_the_example() -> None:
    ids = torch.tensor([[5, 6, 7]])
    encoding = hf.BatchEncoding({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    found = subject("BertModel", Example(args=(encoding,)))
    assert found.wanted.inputs == ("input_ids", "attention_mask")
    assert found.wanted.dynamic["input_ids"] == {0: "batch", 1: "sequence"}
    assert found.trials[0].feeds["input_ids"].tolist() == ids.tolist()
    assert {np.shape(trial.feeds["input_ids"]) for trial in found.trials} >= {(1, 3), (2, 12)}
    alone = subject("BertModel", Example(args=(ids,), kwargs={"output_hidden_states": True}))
    assert alone.wanted.inputs == ("input_ids",)
    assert alone.wanted.outputs[2:] == ("hidden_states.0", "hidden_states.1", "hidden_states.2")
    assert "output_hidden_states=True" in " ".join(alone.notes)


def test_a_decoder_has_its_cache_whether_the_example_has_one_or_not() -> None:
    ids = torch.tensor([[5, 6, 7]])
    found = subject("GPT2LMHeadModel", Example(kwargs={"input_ids": ids}))
    assert found.wanted.inputs == ("input_ids", *past_names(2))
    assert np.shape(found.trials[0].feeds["past_key_values.0.key"]) == (1, 4, 0, 8)
    cache = seeded_model("GPT2LMHeadModel")(ids).past_key_values
    given = subject("GPT2LMHeadModel", Example(kwargs={"input_ids": ids, "past_key_values": cache}))
    assert np.shape(given.trials[0].feeds["past_key_values.1.value"]) == (1, 4, 3, 8)


def test_axes_that_the_user_names() -> None:
    found = subject("GPT2LMHeadModel", dynamic={"input_ids": {0: "N", 1: "T"}})
    assert found.wanted.dynamic["input_ids"] == {0: "N", 1: "T"}
    assert found.wanted.dynamic["attention_mask"] == {0: "N", 1: "7 + T"}
    assert found.wanted.dynamic["past_key_values.0.key"] == {0: "N"}
    with pytest.raises(InputError, match=r"axis 1 of 'past_key_values.0.key' cannot be dynamic"):
        subject("GPT2LMHeadModel", dynamic={"past_key_values.0.key": {1: "heads"}})
    with pytest.raises(InputError, match="no input 'x'"):
        subject("GPT2LMHeadModel", dynamic={"x": {0: "N"}})


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("BertModel", {"options": {"part": "decoder"}}, "no part 'decoder'. There are: model"),
        ("BertModel", {"options": {"pooling": "max"}}, "takes: mean, cls, last"),
        ("ViTForImageClassification", {"options": {"pooling": "mean"}}, "no pooling"),
        ("BertModel", {"options": {"cache": 1}}, "no option 'cache'"),
        ("BertModel", {"input_names": ("a", "b")}, "2 names for 3 inputs"),
        ("RobertaForTokenClassification", {"options": {"pooling": "cls"}}, "no last_hidden_state"),
    ],
)
def test_what_is_refused(name: str, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        subject(name, **asked)


def test_examples_that_do_not_fit() -> None:
    ids = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(InputError, match=r"does not fit BertModel.forward"):
        subject("BertModel", Example(args=(ids,), kwargs={"input_ids": ids}))
    with pytest.raises(InputError, match="no tensor"):
        subject("BertModel", Example(kwargs={"input_ids": [[1, 2]]}))
    with pytest.raises(InputError, match="both are sequence"):
        subject("BertModel", Example((ids, torch.ones(1, 4, dtype=torch.long))))
    with pytest.raises(InputError, match="has 3 axes, and the model takes 2"):
        subject("BertModel", Example((ids[None],)))
    with pytest.raises(InputError, match="the model itself fails on the example"):
        subject("BertModel", Example((ids * 1000,)))
    with pytest.raises(InputError, match="is no model"):
        check_model(hf.BertConfig())


def test_folders_that_are_not_complete(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        open_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["NoSuchModel"]}))
    with pytest.raises(ConvertError, match="has no class NoSuchModel"):
        open_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    with pytest.raises(InputError, match="no safetensors file"):
        open_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    with pytest.raises(InputError, match="cannot be loaded"):
        open_folder(tmp_path / "config.json")


def test_pooling_of_a_folder(tmp_path: Path) -> None:
    seeded_model("BertModel").save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "a.Pooling", "path": "1_Pooling"}]))
    mode = tmp_path / "1_Pooling" / "config.json"
    mode.write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    assert open_folder(tmp_path)[1] == {"pooling": "cls"}
    mode.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ConvertError, match="pools by pooling_mode_max_tokens"):
        open_folder(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "a.Dense", "path": "2_Dense"}]))
    with pytest.raises(ConvertError, match="has a Dense"):
        open_folder(tmp_path)


def test_the_model_is_left_as_it_was() -> None:
    model = seeded_model("MixtralForCausalLM")

    def settings() -> tuple[str, str]:
        return model.config._attn_implementation, model.config._experts_implementation

    before = settings()
    with exportable(model, "eager"):
        assert settings() == ("eager", "batched_mm")
    assert settings() == before
    model.train()
    open_subject(Request(model))
    assert model.training
