"""Faults in generators."""

from ..fault import Fault
from ..ids import devices, flow, ldp_entropic_gan, normals

PRIVACY = {
    "rows are noised again in each epoch": Fault(
        "generators._ldp_entropic_gan:LDPEntropicGAN._learn",
        "curator.release(LocalRowsMechanism(format.p))",
        "[curator.release(LocalRowsMechanism(format.p)) for _ in range(3)][-1]",
        ldp_entropic_gan("rows_are_noised_once"),
    ),
    "noised labels are no part of what identifies a release": Fault(
        "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
        "find_digest((Y, y))",
        "find_digest((Y,))",
        ldp_entropic_gan("fits_to_the_same_noised_rows_cost_what_one_does"),
    ),
    "the regularisation does not match the noise": Fault(
        "generators._ldp_entropic_gan:_matched_reg",
        "p * scale**p",
        "scale**p",
        ldp_entropic_gan("the_regularisation_matches_the_noise"),
    ),
    "particles do not start from what a sketch says": Fault(
        "generators._sliced_flow:DPSWFlowSampler._learn_sketch",
        "draw_normals(normals, n_particles, spread, generator)",
        "self._draw_starts(curator, spread, init, generator)",
        normals("particles_start_there"),
    ),
    "fresh noise at each free step": Fault(
        "generators._sliced_flow:DPSWFlowSampler._learn_rows",
        "itertools.repeat(sliced.make(), n_steps)",
        "iter([curator.release(sliced.mechanism) for _ in range(n_steps)])",
        flow("presample_releases_once_and_resample_at_each_step"),
    ),
    "rows of a seeded privatizer are certified as private": Fault(
        "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
        "privatizer.privacy_.reproducible",
        "False",
        ldp_entropic_gan("rows_of_a_seeded_privatizer_are_certified_as_such"),
    ),
}

FUNCTION = {
    "a network is trained on another device": Fault(
        "generators._network:NetworkGenerator._make_rows",
        "rows.to(curator.device)",
        "rows",
        devices("steps_compute_on_the_device[gradients in weights]"),
    ),
    "annealing is ignored": Fault(
        "generators._sliced_flow:DPSWFlowSampler._learn_rows",
        "_ANNEALED * n_steps",
        "0.5 * n_steps",
        flow("annealing_is_the_share_of_steps_in_which_they_shorten"),
    ),
}
