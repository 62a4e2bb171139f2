"""The account: every term of the cost, by rule and in all, and in seconds."""

from __future__ import annotations

import onnx
import pytest

import sardonyx as sx
from sardonyx.model.save import to_proto
from sardonyx.passes.optimize import Optimized, Settings, optimize
from sardonyx.passes.rewriting.bill import DEFAULT_RATES, NOTHING, Bill, Rates
from sardonyx.runtime.folding import fold_node

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
TURNED = """g (float[8, 16] x) => (float[8, 16] y) <float[16] w = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {
    a = Transpose <perm = [1, 0]> (x)
    b = Transpose <perm = [1, 0]> (a)
    c = Relu(b)
    d = Relu(c)
    y = Add(d, w)
}"""


def optimized(text: str) -> Optimized:
    model = sx.load(onnx.parser.parse_model(HEAD + text))
    return optimize(model, Settings(2), evaluate=fold_node)


def test_what_only_changes_places_is_transfer() -> None:
    before = optimized(TURNED).ledger.before
    tensor = 8 * 16 * 4
    assert before.carried == 2 * 2 * tensor
    assert before.bytes == 2 * 2 * tensor + (2 * tensor + 16 * 4)
    assert before.moved == before.bytes + before.carried
    assert before.launches == 5


def test_rules_account_for_all_that_was_saved() -> None:
    ledger = optimized(TURNED).ledger
    saved = sum((entry.saved for entry in ledger.entries.values()), NOTHING)
    assert saved == ledger.before - ledger.after
    assert saved.carried == ledger.before.carried
    assert saved.nodes == 3


def test_a_price_has_four_terms() -> None:
    rates = Rates(flops=100.0, bytes=10.0, carried=5.0, launches=2.0, origin="a test")
    price = Bill(nodes=9, flops=200, bytes=30, carried=20, launches=1).price(rates)
    assert (price.compute, price.memory, price.transfer, price.launch) == (2.0, 3.0, 4.0, 0.5)
    assert price.total == 9.5


def test_the_account_is_priced_by_what_the_machine_does() -> None:
    result = optimized(TURNED)
    assumed = result.ledger.to_json()
    assert assumed["rates"]["origin"] == DEFAULT_RATES.origin
    written = to_proto(result.model).SerializeToString(deterministic=True)
    result.ledger.rates = Rates(1.0, 1.0, 1.0, 1.0, "measured")
    priced = result.ledger.to_json()
    before = result.ledger.before
    assert priced["before"]["seconds"]["memory"] == before.bytes
    assert priced["before"]["seconds"]["total"] == pytest.approx(
        before.flops + before.moved + before.launches
    )
    entry = next(rule for rule in priced["rules"] if rule["before"]["carried"])
    assert entry["before"]["seconds"]["transfer"] == before.carried
    assert to_proto(result.model).SerializeToString(deterministic=True) == written
