"""Faults in transport."""

from ..fault import Fault
from ..ids import devices, products, sums

PRIVACY = {
    "what lies between the points of the grid is forgotten": Fault(
        "transport.harmonics:slice_diameter",
        "2 - 2 * lowest + slack",
        "2 - 2 * lowest",
        sums("diameter_of_a_slice"),
    ),
    "sums of products are rounded": Fault(
        "transport.products", "24, 28", "28, 30", products("products_are_those_of_whole_numbers")
    ),
    "a projection depends on the rows around it": Fault(
        "transport.products:ExactMatrix.times",
        "rows.abs().amax(1, keepdim=True)",
        "rows.abs().amax().reshape(1, 1)",
        products("a_product_follows_from_its_row_alone"),
    ),
}

FUNCTION = {
    "weights have no gradient": Fault(
        "transport.sinkhorn:transport",
        "(a * f).sum(-1, keepdim=True)",
        "(a.detach() * f).sum(-1, keepdim=True)",
        "tests/transport/test_sinkhorn.py::test_gradients_in_weights_are_those_of_the_entropic_objective[value-True]",
    ),
    "weights may sum to infinity": Fault(
        "transport.slices:_as_weights",
        "not weights.sum(-1).isfinite().all()",
        "False",
        "tests/transport/test_sinkhorn.py::test_weights_whose_sum_is_no_float_are_refused_by_name",
    ),
    "an accelerator solves small problems": Fault(
        "transport.sinkhorn:transport",
        "'cpu' if cost.numel() <= SMALL else cost.device",
        "cost.device",
        devices("small_plans_are_solved_on_the_cpu[20]"),
    ),
}
