"""What the readers make of details that a table of settings does not show, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from benchmarks.tree_settings import SETTINGS, cat, data, lgb, xgb, xgb_early

from sardonyx.conversion.convert import convert_model
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.trees.catboost import convert_catboost
from sardonyx.conversion.trees.conversion import TreeConversion
from sardonyx.conversion.trees.forest import AT_MOST, BELOW, LEAF, Above, Category, Lookup
from sardonyx.conversion.trees.lightgbm import convert_lightgbm
from sardonyx.conversion.trees.operator import rounded_thresholds
from sardonyx.conversion.trees.xgboost import convert_xgboost
from sardonyx.errors import ConvertError, InputError


def converted(name: str) -> TreeConversion:
    return next(setting for setting in SETTINGS if setting.name == name).convert()


def outputs(model: ir.Model, rows: np.ndarray) -> list[Any]:
    return ort.InferenceSession(ir.to_proto(model).SerializeToString()).run(None, {"X": rows})


# Thresholds


def test_rounded_thresholds_leave_every_float32_on_its_side() -> None:
    doubles = np.array([0.1, -0.1, 1e300, -1e300, 1 + 1e-12, 1 - 1e-12, 2.0, 1e-320, -1e-320])
    for test, goes in ((AT_MOST, np.less_equal), (BELOW, np.less)):
        tests = np.full(len(doubles), test)
        rounded = rounded_thresholds(doubles, tests)
        assert rounded.dtype == np.float32
        for exact, near in zip(doubles, rounded, strict=True):
            with np.errstate(over="ignore"):
                beside = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
            for x in (near, *beside, np.float32(np.inf), np.float32(-np.inf)):
                assert goes(np.float64(x), exact) == goes(x, near)


def test_thresholds_of_lightgbm_at_its_own_zero_are_moved_off_it() -> None:
    trees = converted("lightgbm regression").ensemble.trees
    thresholds = np.concatenate([tree.threshold[tree.test != LEAF] for tree in trees])
    tiny = thresholds[np.abs(thresholds) < 1e-30]
    zero = float(np.float32(1e-35))
    assert len(tiny)
    assert set(tiny.tolist()) <= {zero, float(np.nextafter(-zero, -np.inf))}


# The settings are what they say they are


def test_early_stopping_left_trees_out() -> None:
    for name in ("xgboost", "lightgbm", "catboost"):
        assert 0 < len(converted(f"{name} early stopping").ensemble.trees) < 200


def test_a_booster_that_stopped_early_is_converted_whole_and_a_note_says_so() -> None:
    wrapper = xgb_early()
    booster = convert_xgboost(wrapper.get_booster())
    assert len(booster.ensemble.trees) > len(convert_xgboost(wrapper).ensemble.trees)
    assert "best at iteration" in booster.notes[0]


def test_combined_categories_are_looked_up_with_numbers_beside_them() -> None:
    columns = converted("catboost categories combined").ensemble.columns
    digits = [column.digits for column in columns if isinstance(column, Lookup)]
    assert any(len(each) == 1 for each in digits)
    assert any(sum(isinstance(digit, Category) for digit in each) > 1 for each in digits)
    assert any(isinstance(digit, Above) for each in digits for digit in each)
    # Two borders of one number in one combination are asked for together.
    borders = [[digit.feature for digit in each if isinstance(digit, Above)] for each in digits]
    assert any(len(set(features)) < len(features) for features in borders)


def test_sets_of_categories_and_zeros_are_columns_of_their_own() -> None:
    assert converted("lightgbm categories in sets").ensemble.columns
    assert converted("xgboost categories in sets").ensemble.columns
    assert converted("lightgbm zero_as_missing").ensemble.columns


def test_linear_trees_have_slopes() -> None:
    assert converted("lightgbm linear_tree").ensemble.sloped


# Outputs


def test_a_classifier_gives_labels_and_a_plain_array_of_probabilities() -> None:
    model = converted("lightgbm binary, texts").model
    label, probabilities = model.graph.outputs
    assert (label.name, label.dtype, label.shape) == ("label", ir.DataType.STRING, ["batch"])
    assert (probabilities.name, probabilities.shape) == ("probabilities", ["batch", 2])
    answer = outputs(model, data().x[:5])
    assert set(answer[0]) <= {"yes", "no"}
    assert answer[1].dtype == np.float32


def test_a_regressor_gives_what_predict_gives() -> None:
    assert converted("catboost RMSE").model.graph.outputs[0].shape == ["batch"]
    assert converted("xgboost several targets").model.graph.outputs[0].shape == ["batch", 3]


def test_notes_say_what_numbers_of_categories_mean() -> None:
    for name in ("lightgbm", "xgboost"):
        notes = converted(f"{name} categories of a DataFrame").notes
        assert notes == ('column e takes numbers of categories: ["b", "c", "g", "m", "r"]',)
    notes = converted("catboost categories of texts").notes
    assert notes[0] == 'column e takes numbers of categories: ["r", "g", "b", "c", "m"]'


def test_trees_of_one_leaf_are_part_of_the_base() -> None:
    conversion = convert_xgboost(xgb("Regressor", "score", gamma=1e9))
    rows = np.zeros((3, 6), np.float32)
    np.testing.assert_allclose(
        outputs(conversion.model, rows)[0], conversion.answer(rows)[0], rtol=1e-6
    )


# Refusals


@pytest.mark.parametrize(
    ("convert", "module", "name"),
    [
        (convert_xgboost, "xgboost", "XGBClassifier"),
        (convert_lightgbm, "lightgbm", "LGBMRegressor"),
        (convert_catboost, "catboost", "CatBoostClassifier"),
    ],
)
def test_untrained_models_are_refused(convert: Any, module: str, name: str) -> None:
    model = getattr(pytest.importorskip(module), name)()
    with pytest.raises(ConvertError, match=r"not trained.*Call fit first"):
        convert(model)


@pytest.mark.parametrize("convert", [convert_xgboost, convert_lightgbm, convert_catboost])
def test_files_that_are_none_are_refused(convert: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        convert(tmp_path / "absent.json")
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with pytest.raises(ConvertError, match="cannot read it"):
        convert(bad)


@pytest.mark.parametrize("convert", [convert_xgboost, convert_lightgbm, convert_catboost])
def test_other_objects_are_refused(convert: Any) -> None:
    with pytest.raises(ConvertError, match="is no model of"):
        convert(object())


def test_labels_that_onnx_cannot_have_are_refused() -> None:
    model = cat("Classifier", data().binary + 0.5)
    with pytest.raises(ConvertError, match="neither integers nor texts"):
        convert_catboost(model)


def test_texts_as_categories_of_catboost_need_a_list() -> None:
    for params in ({}, {"one_hot_max_size": 10}):
        model = cat("Classifier", "binary", rows=data().named(), cat_features=["e"], **params)
        with pytest.raises(ConvertError, match=r"column e has categories.*categories="):
            convert_catboost(model)
        with pytest.raises(ConvertError, match="column e has categories"):
            convert_catboost(model, categories={"e": ["r", "g", "b"]})
        with pytest.raises(ConvertError, match="'a', which is no categorical column"):
            convert_catboost(model, categories={"a": ["r"]})


def test_statistics_of_categories_in_trees_that_are_not_symmetric_are_refused() -> None:
    model = cat(
        "Regressor", "score", rows=data().frame, cat_features=["e", "f"], grow_policy="Depthwise"
    )
    with pytest.raises(ConvertError, match="not symmetric"):
        convert_catboost(model)


def test_texts_as_features_of_catboost_are_refused() -> None:
    frame = data().frame
    frame["words"] = np.where(frame["a"] > 0, "up and up", "down we go")
    model = cat("Classifier", "binary", rows=frame, text_features=["words"])
    with pytest.raises(ConvertError, match="text"):
        convert_catboost(model)


# Through sx.convert


def test_a_model_is_converted_and_verified_without_an_example() -> None:
    result = convert_model(Request(xgb("Classifier", "three")))
    assert result.verification is not None
    assert result.verification.ok
    assert [trial.what for trial in result.verification.trials] == [
        "at thresholds, missing, unseen",
        "one row",
    ]


def test_names_axes_opset_and_type_are_those_asked_for() -> None:
    request = Request(
        lgb("Classifier", "texts"),
        examples=(Example((data().x.astype(np.float64)[:20],)),),
        input_names=("features",),
        output_names=("class", "p"),
        dynamic={"features": {0: "n"}},
        opset=20,
    )
    graph = convert_model(request).model.graph
    assert [(port.name, port.shape) for port in graph.inputs] == [("features", ["n", 6])]
    assert graph.inputs[0].dtype == ir.DataType.DOUBLE
    assert [port.name for port in graph.outputs] == ["class", "p"]
    assert graph.opset_imports[""] == 20


def test_a_digit_has_an_option_for_every_answer() -> None:
    assert Category(0, 5).options == 7
    assert Above(0, 1.0, False).options == 2
