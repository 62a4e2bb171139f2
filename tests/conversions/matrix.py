"""What holds of every row of the conversion matrix."""

from __future__ import annotations

import pytest
from benchmarks.conversions.case import Case

from sardonyx.conversion.convert import Converted, convert_model
from sardonyx.errors import SardonyxError

__all__ = ["check_case"]


def check_case(case: Case, *, engine: str, framework: str | None = None) -> Converted | None:
    """A row is verified on two trials or more, or refused with its reason; None where it is refused."""
    request = case.request()
    if case.refusal:
        with pytest.raises(SardonyxError) as refused:
            convert_model(request, framework=framework, engine=engine)
        assert case.refusal in str(refused.value)
        return None
    converted = convert_model(request, framework=framework, engine=engine)
    assert converted.verification is not None
    assert converted.verification.ok
    assert len(converted.verification.trials) >= 2
    if case.check is not None:
        case.check(converted)
    return converted
