from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from tests.unit.backends.reference.models import floats, run_node

from sardonyx.backends.reference.corrections import CORRECTIONS

ENTRIES = [(*key, entry) for key, entries in CORRECTIONS.items() for entry in entries]


@pytest.mark.parametrize(("domain", "name"), CORRECTIONS)
def test_versions_of_a_correction_do_not_overlap(domain: str, name: str) -> None:
    spans = sorted((entry.since, entry.until) for entry in CORRECTIONS[domain, name])
    assert all(low <= high for low, high in spans)
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_every_correction_is_of_an_operator_and_has_a_reason() -> None:
    names = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert {(domain, name) for domain, name, _ in ENTRIES} <= names
    assert all(len(entry.reason) > 10 for *_, entry in ENTRIES)


def test_old_broadcasting_aligns_by_axis() -> None:
    a = np.zeros((2, 3, 4), np.float32)
    y = run_node("Add", 6, a, floats(1, 2, 3), broadcast=1, axis=1)
    assert y[0, :, 0].tolist() == [1, 2, 3]


def test_old_broadcasting_aligns_from_the_right() -> None:
    y = run_node("Mul", 6, np.ones((2, 3), np.float32), floats(1, 2, 3), broadcast=1)
    assert y.tolist() == [[1, 2, 3]] * 2


def test_softmax_before_13_is_over_everything_after_the_axis() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    y = run_node("Softmax", 11, x)
    np.testing.assert_allclose(y.sum((1, 2)), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("version", "attributes", "training"),
    [
        (6, {}, True),
        (6, {"is_test": 1}, False),
        (9, {}, False),
        (15, {}, False),
        (15, {"training_mode": 1}, True),
    ],
)
def test_each_batch_normalization_knows_when_it_trains(
    version: int, attributes: dict[str, int], training: bool
) -> None:
    x = floats(1, 3).reshape(2, 1)
    outputs = 3 if version >= 14 and training else 1
    parameters = [floats(1), floats(0), floats(10), floats(4)]
    result = run_node("BatchNormalization", version, x, *parameters, outputs=outputs, **attributes)
    y = result[0] if outputs > 1 else result
    expected = [-1, 1] if training else [-4.5, -3.5]
    np.testing.assert_allclose(y.reshape(-1), expected, rtol=1e-4)
    if outputs > 1:
        np.testing.assert_allclose(
            [result[1][0], result[2][0]], [0.9 * 10 + 0.1 * 2, 0.9 * 4 + 0.1 * 1]
        )


def test_upsample_of_opset_1_scales_by_attributes() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    y = run_node("Upsample", 1, x, height_scale=1.0, width_scale=2.0)
    assert y.tolist() == [[[[0, 0, 1, 1], [2, 2, 3, 3]]]]


def test_cast_of_opset_1_names_its_type() -> None:
    assert run_node("Cast", 1, floats(1.5), to="INT32").dtype == np.int32


def test_labels_go_both_ways_in_the_first_label_encoder() -> None:
    words = ["b", "a"]
    encoded = run_node(
        "LabelEncoder", 1, np.array(["a", "z"], object), domain="ai.onnx.ml", classes_strings=words
    )
    decoded = run_node(
        "LabelEncoder", 1, np.array([1, 9]), domain="ai.onnx.ml", classes_strings=words
    )
    assert encoded.tolist() == [1, -1]
    assert decoded.tolist() == ["a", "_Unused"]


def test_a_tree_that_circles_is_refused() -> None:
    with pytest.raises(Exception, match="circle"):
        run_node(
            "TreeEnsembleRegressor",
            3,
            floats(1).reshape(1, 1),
            domain="ai.onnx.ml",
            nodes_treeids=[0, 0, 0],
            nodes_nodeids=[0, 1, 2],
            nodes_featureids=[0, 0, 0],
            nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
            nodes_values=[5.0, 5.0, 0.0],
            nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 2, 0],
            target_treeids=[0],
            target_nodeids=[2],
            target_ids=[0],
            target_weights=[1.0],
        )


MAPS = {"a": 1.5, "c": 2.5}


def test_maps_become_rows_and_rows_become_maps() -> None:
    row = run_node(
        "DictVectorizer", 1, MAPS, domain="ai.onnx.ml", string_vocabulary=["c", "b", "a"]
    )
    assert (row.tolist(), row.dtype) == ([[2.5, 0, 1.5]], np.float32)
    zipped = run_node("ZipMap", 1, row, domain="ai.onnx.ml", classlabels_strings=["c", "b", "a"])
    assert zipped == [{"c": 2.5, "b": 0.0, "a": 1.5}]


def test_cast_map_orders_by_key() -> None:
    dense = run_node("CastMap", 1, {7: 2.5, 1: 1.5}, domain="ai.onnx.ml", cast_to="TO_INT64")
    sparse = run_node(
        "CastMap", 1, {3: 2.5, 1: 1.5}, domain="ai.onnx.ml", map_form="SPARSE", max_map=5
    )
    assert dense.tolist() == [[1, 2]]
    assert sparse.tolist() == [[0, 1.5, 0, 2.5, 0]]


def test_string_normalizer_drops_whole_words_and_keeps_accents() -> None:
    words = np.array(["Le", "Café", "le"], dtype=object)
    y = run_node("StringNormalizer", 10, words, stopwords=["LE"], case_change_action="UPPER")
    assert y.tolist() == ["CAFÉ"]
    none = run_node("StringNormalizer", 10, words[:1].reshape(1, 1), stopwords=["le"])
    assert none.tolist() == [[""]]


def test_an_image_needs_its_extra_or_is_decoded() -> None:
    encoded = np.frombuffer(b"P6 1 1 255 abc", np.uint8)
    try:
        import PIL  # noqa: F401
    except ImportError:
        with pytest.raises(Exception, match=r"pip install 'sardonyx\[image\]'"):
            run_node("ImageDecoder", 20, encoded)
    else:
        assert run_node("ImageDecoder", 20, encoded).tolist() == [[[97, 98, 99]]]
        assert run_node("ImageDecoder", 20, encoded, pixel_format="BGR").tolist() == [
            [[99, 98, 97]]
        ]
