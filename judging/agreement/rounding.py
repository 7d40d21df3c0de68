"""Half-up rounding on exact numbers, so that a printed digit is never an accident of binary fractions."""

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

_WIDE = Context(prec=400)  # a float has at most 309 digits before its point


def half_up(value: Fraction | float | None, digits: int) -> str:
    """`value` with `digits` decimals, a tie rounded away from zero; empty text when undefined (None or NaN).

    A float stands for the shortest decimal that reads back as it. For a quotient of two integers computed in
    one division that is exact: a tie k/n is its own shortest decimal, and any other k/n with n below 1e9 lies
    further from the tie than a float can err. `f"{13/32:.4f}"` gives 0.4062; this gives 0.4063.
    """
    exact = _exact(value)
    if exact is None:
        return ""
    if isinstance(exact, Decimal):
        rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)
        return f"{rounded if rounded else abs(rounded):f}"
    scaled = abs(exact) * 10**digits
    units = math.floor(scaled + Fraction(1, 2))
    sign = "-" if exact < 0 and units > 0 else ""
    whole, part = divmod(units, 10**digits)
    return f"{sign}{whole}.{part:0{digits}d}" if digits > 0 else f"{sign}{whole}"


def percent(value: Fraction | float | None, digits: int = 2) -> str:
    """`value` as a percentage without its sign, rounded half-up after the shift by a hundred."""
    exact = _exact(value)
    return "" if exact is None else half_up(Fraction(exact) * 100, digits)


def share_text(hits: int, n: int) -> str:
    """`267/281 (95.02%)` as Tables 2 and 5 print it; a full share reads `100%`; without units only `0/0`."""
    if n == 0:
        return "0/0"
    share = "100" if hits == n else percent(Fraction(hits, n))
    return f"{hits}/{n} ({share}%)"


def _exact(value: Fraction | float | None) -> Fraction | Decimal | None:
    if value is None:
        return None
    if isinstance(value, Fraction):
        return value
    if math.isinf(value):
        raise ValueError(f"cannot round {value!r}: an estimate is a finite number or undefined (None)")
    return None if math.isnan(value) else Decimal(repr(float(value)))
