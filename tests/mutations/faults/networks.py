"""Faults in networks."""

from ..fault import Fault
from ..ids import components, dpaf

PRIVACY = {
    "local directions forget how components are scaled": Fault(
        "networks.components:PrincipalComponents.find_directions",
        "scale[:, None] * (axes.T @ block.T)",
        "axes.T @ block.T",
        components("local_directions_show_windows_of_decoded_images"),
    ),
    "batches of private rows are normalised": Fault(
        "networks.discriminators:_normalise",
        "maps.mean(2, keepdim=True)",
        "maps.mean(0)",
        dpaf("no_row_looks_at_another"),
    ),
}

FUNCTION = {
    "components of all columns, whatever the noise": Fault(
        "networks.components:choose_space",
        "int(np.argmax(held))",
        "0",
        components("components_of_images_are_smooth_where_there_is_noise[4.0]"),
    ),
    "noise is forgotten where components are sought": Fault(
        "networks.components:held_by_leading",
        "2 * std**2",
        "0 * std**2",
        components("share_that_components_hold_is_estimated[40.0]"),
    ),
}
