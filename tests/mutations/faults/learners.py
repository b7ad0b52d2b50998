"""Faults in learners."""

from ..fault import Fault
from ..ids import (
    aligning,
    by_level,
    devices,
    dpaf,
    flow,
    history_fits,
    history_particles,
    interactions,
    ldp_entropic_gan,
    normals,
    rehearsal,
    schema_report,
    sizes,
    sliced_wasserstein,
    tables,
)

PRIVACY = {
    "what is spent follows from what stands out": Fault(
        "learners.interactions:InteractionSearch.run",
        "chosen = found or candidates[:1]",
        """
        if not (chosen := found):
            return [], None, self.format
        """,
        interactions("spending_does_not_follow_from_the_rows"),
    ),
    "normal distributions are fitted to other slices": Fault(
        "learners.sketch:SliceCycle.__init__",
        "self._basis, self._means = basis.subset(order), means[..., order]",
        "self._basis, self._means = basis.subset(order), means",
        normals("a_distribution_is_found_from_its_sketch"),
    ),
    "normal distributions are fitted to the noise": Fault(
        "learners.normals:fit_normals_to_sketch",
        "float((noise > 0).all())",
        "0.0",
        normals("a_fit_ends_at_the_noise"),
    ),
    "a distribution in few directions starts with less": Fault(
        "learners.normals:fit_normals_to_sketch",
        "factor.mul_((d / factor.shape[2]) ** 0.5)",
        "factor",
        normals("the_start_has_the_spread[100]"),
    ),
    "a normal distribution has another width on high harmonics": Fault(
        "learners.normals:expected_harmonics",
        "b**2",
        "b",
        normals("mean_values_are_those_of_many_draws"),
    ),
    "a network that does not fit is found out after releases": Fault(
        "learners.rows:try_network",
        "try_generator(network, latent_dim, n_classes, n_outputs, batch_size, device)",
        "None",
        sliced_wasserstein("a_network_of_a_wrong_size_costs_nothing"),
    ),
    "a device without memory is found out by the private rows": Fault(
        "planning.rehearsal:rehearse_fit",
        "error is not None and is_out_of_memory(error)",
        "False",
        devices("a_device_without_memory_is_refused_before_a_release[sketch]"),
    ),
    "a rehearsal is charged": Fault(
        "planning.rehearsal:rehearse_fit",
        "PublicRun()",
        "muted()",
        devices("a_rehearsal_is_charged_to_no_budget"),
    ),
    "a rehearsal trains the estimator of the user": Fault(
        "planning.rehearsal:rehearse_fit",
        "copy.copy(estimator)",
        "estimator",
        devices("a_rehearsal_makes_all_releases_and_changes_nothing[sketch]"),
    ),
    "a rehearsal takes all steps": Fault(
        "learners.training:at_most_one_step",
        "_most_steps.set(1)",
        "_most_steps.set(None)",
        devices("a_rehearsal_makes_all_releases_and_changes_nothing[rows]"),
    ),
    "networks of users are made, and not trained, before releases": Fault(
        "learners.rehearsal:try_generator",
        "isinstance(network, str) and device.type == 'cpu'",
        "device.type == 'cpu'",
        rehearsal("a_network_that_fails_is_refused_before_a_release[sketch-detached]"),
    ),
    "a network is rehearsed in training alone": Fault(
        "learners.rehearsal:_take_step",
        "(inputs[:1], inputs[:3], inputs[:32])",
        "()",
        rehearsal("a_network_that_fails_is_refused_before_a_release[sketch-NaN in evaluation]"),
    ),
    "a network is rehearsed with many rows alone": Fault(
        "learners.rehearsal:_take_step",
        "(inputs[:1], inputs[:3], inputs[:32])",
        "(inputs[:3], inputs)",
        rehearsal("a_network_that_fails_is_refused_before_a_release[sketch-one row is none]"),
    ),
    "a rehearsal trains the module of the user": Fault(
        "learners.rehearsal:rehearse",
        "copy.deepcopy(network).to(inputs.device)",
        "network.to(inputs.device)",
        rehearsal("a_rehearsed_adapter_starts_where_it_would"),
    ),
    "frozen weights are trained": Fault(
        "learners.training:list_trained",
        "parameter.requires_grad",
        "True",
        rehearsal("frozen_weights_stay_as_they_are[sketch]"),
    ),
    "a step compares slices with others": Fault(
        "learners.sketch:SliceCycle.__next__",
        "self._means[..., part]",
        "self._means[..., : part.stop - part.start]",
        sizes("a_step_of_a_network_looks_at_some_slices_of_many"),
    ),
}

FUNCTION = {
    "a step copies numbers to the device": Fault(
        "learners.normals:expected_harmonics",
        "torch.arange(1.0, len(basis.weights) + 1, dtype=angles.dtype, device=angles.device)",
        "torch.arange(1, len(basis.weights) + 1).to(angles)",
        devices("steps_after_a_release_wait_for_nothing[flow]"),
    ),
    "rows do not depend on how many there are": Fault(
        "histories.learner:make_tables",
        "torch.stack(of_counts)",
        "counts.T @ mean_row",
        history_particles(
            "tables_of_uncertain_particles_are_those_of_their_persons[person-row tables]"
        ),
    ),
    "shares of rows are those of persons with more": Fault(
        "histories.learner:HistoryParticles.find_shares",
        "numbers / counts",
        "numbers",
        history_particles("tables_of_particles_are_those_that_are_released"),
    ),
    "persons with too many rows have none": Fault(
        "histories.learner:HistoryParticles.find_shares",
        "persons[:, -M - 1 : -1] + torch.nn.functional.pad(persons[:, -1:], (M - 1, 0))",
        "persons[:, -M - 1 : -1]",
        history_particles("tables_of_particles_are_those_that_are_released"),
    ),
    "numbers of rows are lost that noise hides one by one": Fault(
        "histories.learner:find_absent",
        "counts[end].sum() <= noise",
        "True",
        history_particles("numbers_of_rows_are_absent_at_an_end_and_within_noise_together"),
    ),
    "numbers of rows are lost between others": Fault(
        "histories.learner:_estimate_marginals",
        "is_empty[numbers] = find_absent(counts[numbers], std[numbers], is_empty[numbers])",
        "pass",
        history_fits("few_persons_have_any_number_of_rows"),
    ),
    "the weight of classes is ignored": Fault(
        "adaptation.learner:fit_adaptation",
        "class_align_weight * _class_gap(encoded, labels, encoded_target, predicted)",
        "0 * _class_gap(encoded, labels, encoded_target, predicted)",
        aligning("the_weight_of_classes_brings_their_means_together"),
    ),
    "what is like the target is ignored": Fault(
        "adaptation.learner:fit_adaptation",
        "[*source] if masked is None else [*source, masked]",
        "[*source]",
        aligning("rows_like_the_target_are_learnt_from_and_compared"),
    ),
    "domains are compared by what the target lacks": Fault(
        "adaptation.learner:fit_adaptation",
        """
        encoded = encode(part)
        loss = loss + cross_entropy(head(encoded), labels)
        """,
        "loss = loss + cross_entropy(head(encode(part)), labels)",
        aligning("rows_like_the_target_are_learnt_from_and_compared"),
    ),
    "the head learns that fakes are real": Fault(
        "learners.aggregates:fit_to_aggregates",
        "head.step(verdict(real, is_real=True) + verdict(fake, is_real=False), rate)",
        "head.step(verdict(real, is_real=True) + verdict(fake, is_real=True), rate)",
        dpaf("the_head_learns_to_tell_what_is_real"),
    ),
    "groups of labels weigh the same": Fault(
        "learners.entropic:fit_to_noised_rows",
        "counts[labels] / len(codes)",
        "np.full(len(labels), 1 / len(labels))",
        ldp_entropic_gan("groups_of_labels_weigh_as_many_rows_as_they_have"),
    ),
    "the last group of levels is one too far": Fault(
        "learners.interactions:join_levels",
        "np.minimum(group.astype(int), n_groups - 1)",
        "np.minimum(group.astype(int), n_groups - 2)",
        interactions("levels_are_joined_by_how_frequent_they_are"),
    ),
    "signs are those of one group": Fault(
        "learners.interactions:join_levels",
        "(shares.cumsum() - shares / 2) / shares.sum() * n_groups",
        "(shares.cumsum() - shares / 2) / shares.sum()",
        interactions("levels_are_joined_by_how_frequent_they_are"),
    ),
    "noise stands out": Fault(
        "learners.interactions:find_subsets",
        "norm.isf(CONSTANTS.chance / (2 * gaps.size)) * chance",
        "chance",
        interactions("false_alarms_are_rare"),
    ),
    "what pairs explain stands out": Fault(
        "learners.interactions:find_subsets",
        "np.where(is_known[:, None], pooled, predicted)",
        "pooled * is_known[:, None]",
        interactions("subsets_that_stand_out_are_found"),
    ),
    "a table of each larger subset": Fault(
        "learners.interactions:find_subsets",
        "set(smaller) <= set(subsets[i])",
        "set(smaller) == set(subsets[i])",
        interactions("subsets_that_stand_out_are_found"),
    ),
    "what pairs imply is sought again": Fault(
        "learners.interactions:find_subsets",
        "np.where(is_known, 1.0, CONSTANTS.blur)",
        "np.ones(len(is_known))",
        interactions("interactions_that_pairs_imply_are_not_sought"),
    ),
    "sums of signs exceed the records": Fault(
        "learners.interactions:find_subsets",
        "released.clip(-counts, counts)",
        "released",
        interactions("interactions_that_pairs_imply_are_not_sought"),
    ),
    "bins have the knots of others": Fault(
        "learners.table_rows:TableRows.generate",
        "rows @ self.to_knots",
        "rows @ self.to_knots.flip(0)",
        interactions("numbers_get_finer_knots_where_they_interact"),
    ),
    "the bootstrap is not shrunk": Fault(
        "learners.particles:Particles.sample",
        "moved / math.sqrt(1 + CONSTANTS.jitter**2)",
        "moved",
        flow("the_bootstrap_is_shrunk_by_what_the_jitter_adds"),
    ),
    "diffusion by √(λh)": Fault(
        "learners.particles:flow_along_slices",
        "2 * diffusion",
        "diffusion",
        flow("a_step_of_the_flow_diffuses_by_its_length"),
    ),
    "one unit of zeros too many": Fault(
        "learners.particles:_smooth",
        "1 / max(share, CONSTANTS.least_share) - 1",
        "1 / max(share, CONSTANTS.least_share)",
        flow("particles_of_a_class_have_as_many_zeros_as_records_have"),
    ),
    "a rare level is judged by all records": Fault(
        "learners.marginals:read_tables",
        "find_signal(cells, tables.pairs_std)",
        "find_signal(tables.cells, tables.pairs_std)",
        by_level("a_rare_level_whose_tables_are_noise_is_warned_of[30-True]"),
    ),
    "classes that are not generated are listed": Fault(
        "tables.format:TableFormat.without_absent",
        "tuple(compress(self.levels_of_target, its_own))",
        "()",
        by_level("a_target_has_no_other_classes_than_those_that_show[DPSWFlowSampler]"),
    ),
    "classes are made of noise": Fault(
        "learners.tables:fit_to_release",
        "counts[marginals.is_empty[tables.by]] = 0",
        "pass",
        by_level("a_target_has_no_other_classes_than_those_that_show[DPSWFlowSampler]"),
    ),
    "knots within noise start without records": Fault(
        "learners.marginals:Marginals.starts",
        "np.maximum(self.counts, least)",
        "self.counts",
        by_level("knots_start_with_some_records_whatever_the_noise"),
    ),
    "spare levels that nobody has are generated": Fault(
        "learners.table_rows:TableRows.to_probabilities",
        "logits + self.offset.new_zeros(()).masked_fill(self.is_empty, -torch.inf)",
        "logits",
        schema_report("spare_levels_within_noise_are_never_generated[particles]"),
    ),
    "a change of one level shifts all": Fault(
        "learners.table_rows:TableNetwork.shift",
        "self.offset += change",
        "self.offset += change.mean(0)",
        by_level("parts_differ_in_a_network_by_what_they_are_told"),
    ),
    "rows of one level for all": Fault(
        "learners.table_rows:TableNetwork.draw",
        "torch.eye(len(n_rows)).repeat_interleave(torch.tensor(n_rows), dim=0)",
        "torch.eye(len(n_rows))[:1].repeat(sum(n_rows), 1)",
        by_level("parts_differ_in_a_network_by_what_they_are_told"),
    ),
    "both samples of a loss are halves of one": Fault(
        "learners.table_rows:TableRows.draw_pair",
        "torch.cat([self.draw(n_rows, generator) for _ in range(2)])",
        "self.draw([2 * n for n in n_rows], generator)",
        by_level("the_two_samples_of_a_loss_are_independent"),
    ),
    "one part of a loss makes up for another": Fault(
        "learners.training:decay_at_noise",
        "(running <= noise_energy).all()",
        "running.sum() <= torch.as_tensor(noise_energy).sum()",
        "tests/learners/test_training.py::test_each_part_of_a_loss_is_down_to_its_noise",
    ),
    "particles of one level for all": Fault(
        "learners.table_rows:TableParticles.draw",
        "start + draw_in_rounds(n_particles, n, generator)",
        "draw_in_rounds(n_particles, n, generator)",
        by_level("three_way_tables_with_the_target_are_learnt[DPSWFlowSampler]"),
    ),
    "the target is put at the end": Fault(
        "learners.table_rows:StratifiedRows.sample",
        "[rows[:, : self.start], block, rows[:, self.start :]]",
        "[rows, block]",
        by_level("the_target_is_put_where_it_was"),
    ),
    "shares of levels are equal": Fault(
        "learners.tables:fit_to_release",
        "counts / counts.sum()",
        "counts * 0 + 1 / len(counts)",
        by_level("levels_are_as_frequent_as_they_were"),
    ),
    "shares of levels are not looked at where tables are compared": Fault(
        "learners.table_targets:TablesTarget.gap",
        "self.share**2 * gap",
        "gap",
        tables("the_energy_of_the_noise_is_that_of_all_parts"),
    ),
    "no level waits for others": Fault(
        "learners.tables:hold_at_noise",
        "torch.where(is_above | ~is_above.any(), gaps, gaps.detach())",
        "gaps",
        tables("parts_within_their_noise_wait_for_others"),
    ),
    "samples that differ are taken for the same rows": Fault(
        "learners.table_targets:_list_samples",
        "second is first",
        "len(second) == len(first)",
        tables("gap_of_tables_and_its_gradient"),
    ),
    "the gradient of exact tables is halved": Fault(
        "learners.table_targets:TablesGap.forward",
        "ctx.save_for_backward(gradients[0], gradients[-1])",
        "ctx.save_for_backward(gradients[0], gradients[-1] * (first is not second))",
        tables("gap_of_tables_and_its_gradient"),
    ),
    "exact tables are left far from the noise": Fault(
        "learners.tables:approach_noise",
        "CONSTANTS.near * noise_energies[i :: len(targets)]",
        "100 * noise_energies[i :: len(targets)]",
        tables("particles_come_near_to_the_noise_before_they_are_sampled"),
    ),
    "strata of noise approach it": Fault(
        "learners.tables:approach_noise",
        "noise_energies[i].isinf()",
        "noise_energies[i].isnan()",
        tables("particles_come_near_to_the_noise_before_they_are_sampled"),
    ),
    "levels are not matched after the training": Fault(
        "learners.tables:match_marginals",
        "(shares / generated).log()",
        "0 * (shares / generated).log()",
        tables("levels_become_as_frequent_as_they_were_released"),
    ),
    "correlations are left within the noise of all cells": Fault(
        "learners.moments:find_clear_moments",
        "bases[c] @ moment @ bases[d].T",
        "0 * (bases[c] @ moment @ bases[d].T)",
        "tests/learners/test_moments.py::test_each_pair_of_columns_is_searched_alone",
    ),
    "training waits for strata of noise": Fault(
        "learners.tables:fit_to_tables",
        "~is_lost | is_lost.all()",
        "is_lost | ~is_lost",
        by_level("strata_of_noise_have_no_part_in_training"),
    ),
    "each moment has the chance of all": Fault(
        "learners.moments:find_clear_moments",
        "stats.false_discovery_control(2 * stats.norm.sf(magnitudes / std))",
        "2 * stats.norm.sf(magnitudes / std)",
        "tests/learners/test_moments.py::test_more_tables_ask_for_clearer_moments",
    ),
    "the noise of moments is forgotten": Fault(
        "learners.moments:find_clear_moments",
        "magnitudes / std",
        "magnitudes",
        "tests/learners/test_moments.py::test_clear_moments_have_the_unit_of_the_noise",
    ),
    "each parameter is pickled with all others": Fault(
        "learners.training:minimize_exactly",
        "parameter.data.clone()",
        "parameter.data",
        "tests/learners/test_moments.py::test_an_exact_loss_is_minimised",
    ),
    "multi-way tables are free while moments are matched": Fault(
        "learners.tables:match_moments",
        "(targets, subsets)",
        "(targets, [])",
        "tests/learners/test_moments.py::test_multi_way_tables_are_held",
    ),
    "weights are not averaged": Fault(
        "learners.training:Training.__init__",
        "memory",
        "0.0",
        "tests/generators/test_sinkhorn_generator.py::test_averaging_is_the_memory_of_the_weights",
    ),
    "a gradient of NaN in one layer is none": Fault(
        "learners.rehearsal:_take_step",
        "all(bool(gradient.isfinite().all()) for gradient in gradients)",
        "any(bool(gradient.isfinite().all()) for gradient in gradients)",
        rehearsal("a_gradient_of_nan_in_one_layer_is_enough"),
    ),
}
