"""Do the tests notice when something breaks? Each mutation breaks it in a copy of the library.

A mutation replaces a text, which must be in the package exactly once, and names the test that must
then fail, by an assertion. On an unbroken copy the same tests pass.
"""

import multiprocessing
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import skdpgen

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs a fork server"
)

# Runs in a process of its own, which has imported others' libraries, but nothing of ours. The
# first line says which package is tested, so that no test of the wrong one goes unnoticed.
_RUN = """
import os, sys
os.chdir(folder)
sys.path.insert(0, folder)
output = os.open("output.txt", os.O_WRONLY | os.O_CREAT)
os.dup2(output, 1)
os.dup2(output, 2)
import pytest, skdpgen
print(skdpgen.__file__, flush=True)
sys.exit(pytest.main(["-q", "-x", "-s", "--import-mode=importlib", "-m", "", *tests]))
"""
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["autodp.transformer_zoo", "dp_accounting", "pandas", "pytest", "sklearn", "torch"]
)


@dataclass(frozen=True)
class Mutation:
    """A change to the package, and the test that must catch it."""

    old: str
    new: str
    test: str

    def find(self, texts):
        """Return the path of the only file, of those in `texts`, that is to be changed."""
        found = {path: text.count(self.old) for path, text in texts.items() if self.old in text}
        where = {path.as_posix(): count for path, count in sorted(found.items())}
        assert sum(found.values()) == 1, f"{self.old!r} is in {where or 'no file'}, not once."
        (path,) = found
        return path

    def apply(self, package):
        texts = _read_all(package)
        path = self.find(texts)
        text = texts[path].replace(self.old, self.new)
        (package / path).write_text(text, encoding="utf-8")


def _read_all(package):
    paths = package.rglob("*.py")
    return {path.relative_to(package): path.read_text(encoding="utf-8") for path in paths}


_FEW_ROWS = "tests/test_few_rows.py"


def _common(check, estimator="sliced-pca"):
    return f"tests/test_common.py::test_generator[{estimator}-{check}]"


def _fuzz(kind):
    return f"tests/fuzz/test_fuzz.py::test_a_few_cases[{kind}]"


def _components(test):
    return f"tests/networks/test_components.py::test_{test}"


def _normals(test):
    return f"tests/learners/test_normals.py::test_{test}"


def _sizes(test):
    return f"tests/generators/test_sketch_sizes.py::test_{test}"


def _sampled(test):
    return f"tests/privacy/mechanisms/test_sampled.py::test_{test}"


def _gradients(test):
    return f"tests/privacy/mechanisms/test_gradients.py::test_{test}"


def _aggregates(test):
    return f"tests/privacy/mechanisms/test_aggregates.py::test_{test}"


def _accounting(test):
    return f"tests/accounting/test_accountants.py::test_{test}"


def _budget_files(test):
    return f"tests/accounting/test_budget_files.py::test_{test}"


def _curator(test):
    return f"tests/privacy/test_curator.py::test_{test}"


def _counts(test):
    return f"tests/privacy/mechanisms/test_category_counts.py::test_{test}"


def _samplers(test):
    return f"tests/privacy/test_exact_samplers.py::test_{test}"


def _sums(test):
    return f"tests/privacy/mechanisms/test_sums.py::test_{test}"


def _two_way(test):
    return f"tests/privacy/mechanisms/test_tables.py::test_{test}"


def _three_way(test):
    return f"tests/privacy/mechanisms/test_three_way.py::test_{test}"


def _interactions(test):
    return f"tests/learners/test_interactions.py::test_{test}"


def _by_level(test):
    return f"tests/learners/test_levels.py::test_{test}"


def _budget_processes(test):
    return f"tests/accounting/test_budget_processes.py::test_{test}"


def _strict_json(member):
    test = "a_member_is_what_is_declared_and_nothing_that_looks_like_it"
    return f"tests/accounting/test_strict_json.py::test_{test}[{member}]"


def _audit(test):
    return f"tests/privacy/test_audit.py::test_{test}"


def _audit_statistics(test):
    return f"tests/privacy/test_audit_statistics.py::test_{test}"


def _refuting(test):
    return f"tests/privacy/test_refuting.py::test_{test}"


def _fit_audit(test):
    return f"tests/privacy/test_fit_audit.py::test_{test}"


def _flow(test):
    return f"tests/generators/test_sliced_flow.py::test_{test}"


def _adaptation(test):
    return f"tests/adaptation/test_domain_adapter.py::test_{test}"


def _aligning(test):
    return f"tests/learners/test_adaptation.py::test_{test}"


def _figures(test):
    return f"tests/accounting/test_figures.py::test_{test}"


def _atoms(test):
    return f"tests/formats/test_atoms.py::test_{test}"


def _inference(test):
    return f"tests/formats/test_inference.py::test_{test}"


def _evening(test):
    return f"tests/formats/test_evening.py::test_{test}"


def _rules(test):
    return f"tests/formats/test_rules.py::test_{test}"


def _search(test):
    return f"tests/adaptation/test_private_search.py::test_{test}"


def _privatizer(test):
    return f"tests/preprocessing/test_local_privatizer.py::test_{test}"


def _independent(mechanism):
    test = f"test_no_two_numbers_share_their_noise[{mechanism}]"
    return f"tests/privacy/test_independent_noise.py::{test}"


def _tables(test):
    return f"tests/generators/test_tables.py::test_{test}"


def _open_box(test):
    return f"tests/formats/test_open_box.py::test_{test}"


def _arrays(test):
    return f"tests/formats/test_arrays.py::test_{test}"


def _command_line(test):
    return f"tests/test_command_line.py::test_{test}"


def _cells(test):
    return f"tests/privacy/test_cells.py::test_{test}"


def _chunks(test):
    return f"tests/privacy/test_chunks.py::test_{test}"


def _persons(test):
    return f"tests/privacy/test_persons.py::test_{test}"


def _owners(test):
    return f"tests/privacy/test_owners.py::test_{test}"


def _sharing(test):
    return f"tests/accounting/test_sharing.py::test_{test}"


def _secrets(test):
    return f"tests/privacy/test_secrets.py::test_{test}"


def _rounding(case):
    test = "no_vector_of_whole_numbers_is_longer_than_its_bound"
    return f"tests/privacy/mechanisms/test_rounding.py::test_{test}[{case}]"


def _composition(test):
    return f"tests/accounting/test_composition.py::test_{test}"


def _engines(test):
    return f"tests/privacy/test_engines.py::test_{test}"


def _of_persons(test):
    return f"tests/generators/test_persons.py::test_{test}"


# What must not break: privacy, and what is certified of it.
PRIVACY = {
    "alignment with raw target rows": Mutation(
        "return self._train_on_samples(start, sampler.fit(X_target))",
        "sampler.fit(X_target)\n        sampler.sample = lambda n: X_target\n"
        "        return self._train_on_samples(start, sampler)",
        _adaptation("all_but_the_sketch_is_post_processing"),
    ),
    "target rows scaled by the largest among them": Mutation(
        "sampler.fit(X_target)",
        "sampler.set_params(bounds=(X_target.min(), X_target.max())).fit(X_target)",
        _adaptation("units_follow_from_the_source"),
    ),
    "synthetic rows start from the target": Mutation(
        "sampler.fit(X_target)",
        "sampler.set_params(init=X_target).fit(X_target)",
        _adaptation("no_target_row_is_kept"),
    ),
    "gradient through raw target features": Mutation(
        "self.cotangent(released)",
        "self.cotangent(replace(released, values=exact / scale))",
        "tests/privacy/mechanisms/test_sliced_products.py::test_both_parts_have_the_noise_of_the_event",
    ),
    "products are not paid for": Mutation(
        "beside = base.beside +",
        "beside =",
        "tests/privacy/mechanisms/test_sliced_products.py::test_both_together_cost_one_gaussian_release",
    ),
    "a search is booked as one fit": Mutation(
        "certificate = Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)",
        "certificate = best.privacy_",
        _search("the_certificate_is_that_of_the_search"),
    ),
    "candidates of a search share noise": Mutation(
        "random_state=noise.seed() if noise.reproducible else None",
        "random_state=estimator.random_state",
        _search("candidates_have_noise_of_their_own"),
    ),
    "a run of a search releases more than was paid for": Mutation(
        "if not is_covered(plan.events, self._event, self._relation):",
        "if False:",
        "tests/accounting/test_selection.py::test_a_run_releases_no_more_than_was_paid_for",
    ),
    "a search makes more runs than it pays for": Mutation(
        "noise.number_of_runs(event.mean, event.shape)",
        "noise.number_of_runs(4 * event.mean, event.shape)",
        "tests/accounting/test_selection.py::test_an_audit_of_what_a_search_tells",
    ),
    "labels are released as they are": Mutation(
        "y = classes[curator.release(LocalLabelsMechanism(len(classes))).codes]",
        "curator.release(LocalLabelsMechanism(len(classes)))",
        _privatizer("labels_are_replaced_as_often_as_certified[laplace]"),
    ),
    "classes of sliced rows share their noise": Mutation(
        "noisy = noise.rounded_gaussian(std)",
        'shared = std[:1] if self.name == "sliced rows" else std\n'
        "            noisy = np.broadcast_to(noise.rounded_gaussian(shared), std.shape).copy()",
        _independent("sliced rows"),
    ),
    "classes of aggregates share their noise": Mutation(
        "noisy = noise.rounded_gaussian(std)",
        'shared = std[:1] if self.name == "forward aggregate" else std\n'
        "            noisy = np.broadcast_to(noise.rounded_gaussian(shared), std.shape).copy()",
        _independent("forward aggregate"),
    ),
    "local noise is used again for each block": Mutation(
        "draw(np.broadcast_to(level, part.shape))",
        'vars(self).setdefault("_drawn", draw(np.broadcast_to(level, part.shape)))[: len(part)]',
        "tests/privacy/mechanisms/test_local.py::test_no_row_has_the_noise_of_another[1]",
    ),
    "sensitivity of non-negative sums is understated": Mutation(
        '{"zero_out": 1, "replace_one": apart}',
        '{"zero_out": apart / 2, "replace_one": apart}',
        _sums("zero_out_sensitivity_is_a_bound_and_is_reached[non-negative sum]"),
    ),
    "negative numbers are summed": Mutation(
        "vectors = vectors.clamp(min=0)",
        "pass",
        _sums("replace_one_sensitivity_is_a_bound_and_is_approached[non-negative sum]"),
    ),
    "a threshold is a little lower": Mutation(
        "threshold = most + 1 + math.ceil(",
        "threshold = math.ceil(",
        _counts("noise_that_passes_the_threshold_alone_is_as_rare_as_stated"),
    ),
    "a plan may cost more than its budget": Mutation(
        """\
if cost > self.epsilon:
            raise BudgetExceededError(
                f"The plan costs""",
        """\
if cost > self.epsilon * (1 + 1e-2):
            raise BudgetExceededError(
                f"The plan costs""",
        _curator("a_plan_that_overruns_by_a_millionth_is_refused"),
    ),
    "fits may cost more than their budget": Mutation(
        """\
(1 + 1e-9):
            raise BudgetExceededError(
                f"With this fit ε""",
        """\
(1 + 1e-2):
            raise BudgetExceededError(
                f"With this fit ε""",
        "tests/accounting/test_budget.py::test_a_fit_that_overruns_by_a_millionth_is_refused",
    ),
    "a budget adds nothing for thresholds": Mutation(
        "return cost - math.log1p(-self.threshold_delta) if charged else 0.0",
        "return cost if charged else 0.0",
        "tests/accounting/test_budget.py::test_thresholds_cost_as_much_as_on_a_certificate[0.5]",
    ),
    "a key of 32 bits": Mutation(
        "key = secrets.randbits(256)",
        "key = secrets.randbits(32)",
        "tests/privacy/test_noise.py::test_keys_have_256_bits",
    ),
    "samples come from the stream of the noise": Mutation(
        "else random_state, stream=1)",
        "else random_state, stream=0)",
        "tests/test_base.py::test_samples_do_not_come_from_the_stream_of_the_noise",
    ),
    "the last event is not verified": Mutation(
        "            costs = {name:",
        "            events = certificate.events[:-1] or certificate.events\n"
        '            object.__setattr__(certificate, "events", events)\n'
        "            costs = {name:",
        "tests/accounting/test_certificate.py::test_verify_prices_every_event",
    ),
    "the certificate hides that the seed was fixed": Mutation(
        "            reproducible=self._noise.reproducible,\n",
        "            reproducible=False,\n",
        _curator("the_certificate_says_whether_the_seed_was_fixed"),
    ),
    "the local certificate hides that the seed was fixed": Mutation(
        "*_ASSUMED)\n        reproducible = self.random_state is not None",
        "*_ASSUMED)\n        reproducible = False",
        _privatizer("the_certificate_says_whether_the_seed_was_fixed"),
    ),
    "no noise": Mutation(
        "noisy += measured.exact",
        "noisy = measured.exact",
        _common("check_noise"),
    ),
    "noise over √2": Mutation(
        "np.broadcast_to(self.std * self.scale,",
        "np.broadcast_to(self.std * self.scale / math.sqrt(2),",
        _common("check_noise"),
    ),
    "noise for another relation": Mutation(
        "relation=self.plan.relation, noise=",
        'relation="zero_out", noise=',
        _common("check_noise"),
    ),
    "numbers without noise": Mutation(
        "np.triu(noisy) + np.triu(noisy, 1).T",
        "noisy",
        _common("check_noise"),
    ),
    "an event is missing from the certificate": Mutation(
        "(entry.name, entry.total) for entry in self._ledger)",
        "(entry.name, entry.total) for entry in self._ledger[1:])",
        _common("check_ledger"),
    ),
    "a release is not in the ledger": Mutation(
        """\
        if position == len(self._ledger):
            self._ledger.append(_Entry(mechanism.name, event))
        self._ledger[position].count += 1
""",
        "",
        _curator("the_ledger_is_written_before_rows_are_read"),
    ),
    "repeated releases are counted once": Mutation(
        "self._ledger[position].count += 1",
        "self._ledger[position].count = 1",
        _common("check_ledger", "rows"),
    ),
    "a budget is not charged": Mutation(
        "self._reservation.settle(entry.total for entry in self._ledger)",
        "self._reservation.settle(())",
        "tests/generators/test_sliced_wasserstein.py::test_budget",
    ),
    "a row is kept": Mutation(
        '        for name in ("classes_", "class_probabilities_",',
        "        self._first = records._held[0][0][7:8].copy()\n"
        '        for name in ("classes_", "class_probabilities_",',
        _common("check_no_row_in_pickle", "sliced"),
    ),
    "a sum without noise is kept": Mutation(
        '        for name in ("classes_", "class_probabilities_",',
        "        self.mean_ = records._held[0][0].mean(0)\n"
        '        for name in ("classes_", "class_probabilities_",',
        "tests/test_base.py::test_fitted_attributes_are_those_that_are_documented",
    ),
    "rows are looked at before the budget": Mutation(
        "        self._reservation = Reservation(plan, noise.reproducible)\n"
        "        with naming_what_is_charged(plan):\n",
        "        self._source.open()\n"
        "        self._reservation = Reservation(plan, noise.reproducible)\n"
        "        with naming_what_is_charged(plan):\n",
        _common("check_refusal_is_reserved"),
    ),
    "a refusal is for nothing": Mutation(
        "        self._source.open()\n",
        "        try:\n"
        "            self._source.open()\n"
        "        except ValueError:\n"
        "            self.close()\n"
        "            raise\n",
        _curator("strict_curators_refuse_bad_records_after_the_reservation"),
    ),
    "undeclared labels are refused": Mutation(
        "return torch.as_tensor(look_up(y, self._classes))",
        "codes = torch.as_tensor(look_up(y, self._classes))\n"
        "        if (codes < 0).any():\n"
        '            raise ValueError("y holds other labels.")\n'
        "        return codes",
        _common("check_bad_records"),
    ),
    "a bad label is that of the last class": Mutation(
        "present = (codes >= 0) & finite",
        "present = finite",
        _common("check_bad_records"),
    ),
    "infinite numbers are clipped to the bounds": Mutation(
        "is_number = np.isfinite(block)",
        "is_number = ~np.isnan(block)",
        _curator("a_bad_record_counts_as_absent_and_changes_no_other"),
    ),
    "one failing record makes all absent": Mutation(
        "    for i in range(n):\n        alone = _as_rows(",
        "    for i in range(0):\n        alone = _as_rows(",
        _curator("a_record_for_which_an_encoder_fails_counts_as_absent"),
    ),
    "an encoder's warnings leave the fit": Mutation(
        'with _acting("ignore", category):',
        'with _acting("default", category):',
        _curator("warnings_of_an_encoder_are_withheld"),
    ),
    "a product that fails takes those of others with it": Mutation(
        "return _by_record(found, pull_alone, (cotangents, *blocks), n_products)",
        "return cotangents.new_zeros(len(cotangents), n_products) if found is None else found",
        _aggregates(
            "a_record_for_which_the_function_fails_adds_no_features_or_products_of_its_own_only"
        ),
    ),
    "one bad cell makes a block unreadable": Mutation(
        "rows.masked_fill(~is_finite[:, None], torch.nan)",
        "rows.masked_fill(~is_finite.all(), torch.nan)",
        "tests/generators/test_tables.py::test_a_record_with_a_bad_cell_counts_as_absent",
    ),
    "the width of the longest private label is kept": Mutation(
        '(isinstance(dtype, np.dtype) and dtype.kind not in "US")',
        "isinstance(dtype, np.dtype)",
        "tests/generators/test_tables.py::test_the_width_of_private_labels_does_not_get_out",
    ),
    "strict certificates do not say so": Mutation(
        "if not (strict or has_objects):",
        "if not has_objects:",
        _common("check_bad_records"),
    ),
    "rows are not clipped": Mutation(
        "clip_rows(rows.to(self._device), self._clip_norm)",
        "rows.to(self._device)",
        _common("check_neighbours"),
    ),
    "rows are clipped by the largest of them": Mutation(
        "sum_rows(rows.square()).clamp(",
        "sum_rows(rows.square()).max().clamp(",
        _common("check_neighbours"),
    ),
    "sensitivity of the sketch is understated": Mutation(
        "max(slice_diameter(n_harmonics) * math.sqrt(k), across)",
        "max(math.sqrt(k), across)",
        _common("check_neighbours", "sliced"),
    ),
    "slices do not follow from the classes": Mutation(
        "detail = n_records / (n_classes * multiplier)",
        "detail = n_records / multiplier",
        _sizes("slices_are_as_many_as_show_above_the_noise"),
    ),
    "slices do not follow from the noise": Mutation(
        "max(_LEAST_MULTIPLIER, multiplier)",
        "_LEAST_MULTIPLIER",
        _sizes("slices_are_as_many_as_show_above_the_noise"),
    ),
    "slices fall with the budget": Mutation(
        "detail = n_records / (n_classes * multiplier)",
        "detail = n_records / n_classes * multiplier",
        _sizes("more_budget_and_more_records_never_give_fewer_values"),
    ),
    "a number of slices that was given grows": Mutation(
        "        if self.n_projections is None:\n            held",
        "        if True:\n            held",
        _sizes("memory_holds_the_slices_that_are_chosen"),
    ),
    "memory does not hold the slices of many classes": Mutation(
        "_MOST_OF_CLASSES // n_classes,",
        "_MOST_OF_CLASSES,",
        _sizes("memory_holds_the_slices_that_are_chosen"),
    ),
    "memory does not hold the directions of many columns": Mutation(
        "_MOST_OF_COLUMNS // n_columns)",
        "_MOST_OF_COLUMNS)",
        _sizes("memory_holds_the_slices_that_are_chosen"),
    ),
    "windows are as wide as images": Mutation(
        "side * _NARROWEST * (_WIDEST / _NARROWEST) ** sizes",
        "side * 9.0 ** sizes",
        _components("windows_are_small_and_everywhere"),
    ),
    "windows are in the middle": Mutation(
        "(side - 1) * places[..., None]",
        "(side - 1) * 0.5 * places[..., None].ceil()",
        _components("windows_are_small_and_everywhere"),
    ),
    "local directions forget how components are scaled": Mutation(
        "scale[:, None] * (axes.T @ block.T)",
        "axes.T @ block.T",
        _components("local_directions_show_windows_of_decoded_images"),
    ),
    "windows are of what an encoder gives": Mutation(
        'getattr(self.encoder, "maps_windows", self.encoder is None)',
        "True",
        _components("other_encoders_show_no_windows"),
    ),
    "components of images wait until they stand out of all pixels": Mutation(
        "    if are_images:\n        return components\n",
        "",
        f"{_FEW_ROWS}::test_components_of_images_are_sought_however_few_rows_there_are",
    ),
    "any square number of columns is images": Mutation(
        "(1, 3))[1] >= _SIDE_OF_IMAGES",
        "(1, 3))[1] > 1",
        f"{_FEW_ROWS}::test_components_of_images_are_sought_however_few_rows_there_are",
    ),
    "whatever has as many columns is images": Mutation(
        "is_square and (lower == 0).all() and (upper == upper[0]).all()",
        "is_square",
        f"{_FEW_ROWS}::test_components_of_images_are_sought_however_few_rows_there_are",
    ),
    "rows without bounds are images": Mutation(
        "not self.opens_X and super().are_images",
        "super().are_images",
        f"{_FEW_ROWS}::test_components_of_images_are_sought_however_few_rows_there_are",
    ),
    "a number beside images is no column": Mutation(
        "self.encoder is not None or self.has_number or self.bounds is None",
        "self.encoder is not None or self.bounds is None",
        f"{_FEW_ROWS}::test_images_with_a_number_beside_them_are_rows_of_a_table",
    ),
    "low frequencies of images take as many rows as pixels": Mutation(
        "next((space.shape[1] for space in spaces), n_columns)",
        "n_columns",
        f"{_FEW_ROWS}::test_noise_hides_components_of_few_rows",
    ),
    "windows do not go through low frequencies": Mutation(
        "torch.as_tensor(seen)",
        "windows[:, : self.n_columns]",
        _components("windows_go_through_low_frequencies"),
    ),
    "windows are of other shapes than images": Mutation(
        "self.image_shape_ == find_shape(self.n_features_in_, (1, 3))",
        "True",
        _components("other_encoders_show_no_windows"),
    ),
    "no slice is local": Mutation(
        "round(_LOCAL * k)",
        "0",
        _components("half_of_the_slices_of_images_are_local"),
    ),
    "slices are others than were planned": Mutation(
        "_draw_directions(format, components, len(spread), k,",
        "_draw_directions(format, components, len(spread), self._fewest(len(spread)),",
        _sizes("what_is_released_is_what_was_planned_whatever_the_rows_are"),
    ),
    "more slices are taken for more noise": Mutation(
        "sigma = plan.sigma * math.sqrt(self._fewest(n_columns) / k)",
        "sigma = plan.sigma",
        _sizes("more_slices_are_not_taken_for_more_noise"),
    ),
    "slices that are not taken are believed to tell": Mutation(
        "ratio *= math.sqrt(enough / self._fewest(terms.n_columns))",
        "",
        f"{_FEW_ROWS}::test_rows_of_more_columns_than_slices_tell_about_take_more_of_them",
    ),
    "noise in components is not spoken of": Mutation(
        "            self._min_samples_for_components(plan, format),\n",
        "            0,\n",
        f"{_FEW_ROWS}::test_noise_hides_components_of_few_rows",
    ),
    "components of persons have the noise of records": Mutation(
        "plan.multiplier(format.components.name) * (plan.max_rows or 1)",
        "plan.multiplier(format.components.name)",
        f"{_FEW_ROWS}::test_noise_hides_components_of_few_rows",
    ),
    "components that are all kept are to stand out": Mutation(
        "if n_components == n_columns:",
        "if False:",
        f"{_FEW_ROWS}::test_noise_hides_components_of_few_rows",
    ),
    "a step compares slices with others": Mutation(
        "squared_distance(made, means[..., slices], weights)",
        "squared_distance(made, means[..., :_SLICES], weights)",
        _sizes("a_step_of_a_network_looks_at_some_slices_of_many"),
    ),
    "a normal distribution has another width on high harmonics": Mutation(
        "(-(b**2) * variances / 2).exp()",
        "(-b * variances / 2).exp()",
        _normals("mean_values_are_those_of_many_draws"),
    ),
    "normal distributions are fitted to other slices": Mutation(
        "(made - target[..., slices])",
        "(made - target[..., : len(slices)])",
        _normals("a_distribution_is_found_from_its_sketch"),
    ),
    "normal distributions are fitted to the noise": Mutation(
        "descend_to_noise(descent, loss, noise, n_steps, verbose)\n        normals",
        "descend_to_noise(descent, loss, 0.0, n_steps, verbose)\n        normals",
        _normals("a_fit_ends_at_the_noise"),
    ),
    "a distribution in few directions starts with less": Mutation(
        "factor.mul_((d / factor.shape[1]) ** 0.5).requires_grad_(True)",
        "factor.requires_grad_(True)",
        _normals("the_start_has_the_spread[100]"),
    ),
    "particles do not start from what a sketch says": Mutation(
        "starts = draw_normals(normals, n_particles, spread, generator)",
        "starts = self._draw_starts(curator, spread, init, generator)",
        _normals("particles_start_there"),
    ),
    "sensitivity of label flips is understated": Mutation(
        "max(slice_diameter(n_harmonics) * math.sqrt(k), across)",
        "math.sqrt(k + c2)",
        _common("check_neighbours", "sliced"),
    ),
    "what lies between the points of the grid is forgotten": Mutation(
        "math.sqrt(2 - 2 * lowest + slack)",
        "math.sqrt(2 - 2 * lowest)",
        "tests/privacy/mechanisms/test_sums.py::test_diameter_of_a_slice",
    ),
    "truncation moves differences of harmonics": Mutation(
        "scale * (1 - MARGIN) * self._shortening(scale) *",
        "scale * (1 - MARGIN) *",
        "tests/privacy/mechanisms/test_sums.py::test_truncation_does_not_move_two_rows_further_apart",
    ),
    "sensitivity of the moments is understated": Mutation(
        'does not depend on the number of columns."""\n'
        '        return {"zero_out": 1.0, "replace_one": math.sqrt(2)}',
        'does not depend on the number of columns."""\n'
        '        return {"zero_out": 1.0, "replace_one": 1.0}',
        _common("check_neighbours"),
    ),
    "what is not finite has the place that a map gives to zeros": Mutation(
        "places = [rows.masked_fill(~is_finite[:, None], torch.nan) for rows, is_finite in parts]",
        "places = [rows for rows, is_finite in parts]",
        _two_way("chunks_give_the_sums_of_rows_in_memory"),
    ),
    "absent records are in tables": Mutation(
        "places = places[membership.sum(1) > 0]",
        "places = places",
        _two_way("an_absent_record_adds_nothing"),
    ),
    "tables have the scale of single rows": Mutation(
        "scale=half / math.sqrt(self.records)",
        "scale=half",
        _two_way("sensitivity"),
    ),
    "one-way tables are free": Mutation(
        "return math.sqrt(m * (m - 1 + self.weight**2))",
        "return math.sqrt(m * (m - 1) or 1)",
        _two_way("sensitivity"),
    ),
    "two-way tables count once": Mutation(
        "self._find_std(source, event, relation) / math.sqrt(2)",
        "self._find_std(source, event, relation) / 2",
        _two_way("noise"),
    ),
    "one-way tables have the weight of two-way tables": Mutation(
        "half * self.weight / math.sqrt(2 * self.records)",
        "half * self.weight / math.sqrt(self.records)",
        _two_way("sensitivity"),
    ),
    "signs are no further apart than counts": Mutation(
        "apart = 2.0 if is_signed else math.sqrt(2)",
        "apart = math.sqrt(2)",
        _three_way("sensitivity[signs]"),
    ),
    "three-way tables are as many as one": Mutation(
        "[column / math.sqrt(len(self.triples)) for column in columns]",
        "[column / len(self.triples) ** 0.25 for column in columns]",
        _three_way("sensitivity[levels]"),
    ),
    "three levels have a share of a place": Mutation(
        "(at + 1).clamp(max=len(groups) - 1)",
        "(at + 2).clamp(max=len(groups) - 1)",
        _three_way("what_is_released_without_noise[levels]"),
    ),
    "absent records are in three-way tables": Mutation(
        "hats = HatBasis(places[membership.sum(1) > 0], sizes)",
        "hats = HatBasis(places, sizes)",
        _three_way("what_is_released_without_noise[levels]"),
    ),
    "what is spent follows from what stands out": Mutation(
        "    chosen = triples or every[:1]",
        "    if not (chosen := triples):\n        return None",
        _interactions("what_is_spent_does_not_follow_from_the_rows"),
    ),
    "a budget that is gone is made anew": Mutation(
        '"?mode=rw"',
        '"?mode=rwc"',
        _budget_files("files_that_are_no_budgets"),
    ),
    "processes read a budget before they lock it": Mutation(
        'database.execute("BEGIN IMMEDIATE")',
        'database.execute("BEGIN")',
        _budget_files("nobody_decides_on_what_another_is_deciding_on"),
    ),
    "a closed budget is open": Mutation(
        "if _is_closed(database):",
        "if False:",
        _budget_files("a_closed_budget_takes_nothing"),
    ),
    "a copy of a budget says nothing": Mutation(
        "if place != _find_place(self.path):",
        "if False:",
        _budget_files("a_copy_warns"),
    ),
    "other processes know of no budget": Mutation(
        "for path in _inherited if path not in known",
        "for path in ()",
        _budget_files("processes_that_are_started_inside_know_of_it"),
    ),
    "processes are told of the budget that was opened first": Mutation(
        "[*_inherited, *opened]",
        "[*_inherited, *opened[:1]]",
        _budget_processes("interleaved_budgets[crossed]"),
    ),
    "processes are told of what was inherited only while a budget is open": Mutation(
        "dict.fromkeys([*_inherited, *opened])",
        "dict.fromkeys(opened)",
        _budget_processes("what_a_process_has_inherited_stays"),
    ),
    "children copy a lock that is held": Mutation(
        "before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release",
        "before=lambda: None",
        _budget_processes("a_fork_while_another_thread_reserves"),
    ),
    "a budget that is closed takes the configuration of another one": Mutation(
        "while _configs.entered and _configs.entered[-1]._is_closed:",
        "if _configs.entered:",
        _budget_processes("interleaved_budgets[nested]"),
    ),
    "charges are not synced": Mutation(
        '"PRAGMA synchronous=FULL"',
        '"PRAGMA synchronous=OFF"',
        _budget_files("what_is_written_is_on_the_disk"),
    ),
    "a folder is not synced": Mutation(
        "            os.fsync(folder)\n",
        "",
        _budget_files("what_is_written_is_on_the_disk"),
    ),
    "threads are muted one by one": Mutation(
        'others = [("ignore", muted) for muted in tuple(_muted)]',
        "others = []",
        "tests/test_muting.py::test_threads_that_are_started_inside",
    ),
    "filters that others put first win": Mutation(
        "if warnings.filters[: len(_FILTERS)] != _FILTERS:",
        "if not set(_FILTERS) <= set(warnings.filters):",
        "tests/test_muting.py::test_filters_that_were_put_first_afterwards",
    ),
    "another budget takes over a file": Mutation(
        "if kept != terms:",
        "if False:",
        _budget_files("terms_are_those_of_the_file"),
    ),
    "levels share their noise": Mutation(
        "noisy *= self.records",
        "noisy = noisy[:1].repeat(len(noisy), axis=0)\n        noisy *= self.records",
        _independent("tables by level"),
    ),
    "every level has the records of all": Mutation(
        "spread(hats, share[has, None])",
        "spread(hats)",
        _two_way("sensitivity_by_level"),
    ),
    "places below the first level have a share of more than all": Mutation(
        "places = places.clamp(min=0).minimum(last)\n        floor = places.floor()",
        "places = places.minimum(last)\n        floor = places.clamp(min=0).floor()",
        _two_way("sensitivity"),
    ),
    "rows of the ball are taken for places": Mutation(
        "if self._clip_norm is not None:\n            raise PlanError(",
        "if False:\n            raise PlanError(",
        _two_way("places_and_rows_of_the_unit_ball_are_not_taken_for_each_other"),
    ),
    "maps move tables by more than is claimed": Mutation(
        "(groups.abs().sum(1) > 1).any()",
        "(groups.sum(1) > 2).any()",
        _three_way("maps_that_would_move_sums_further"),
    ),
    "a column that is left out is counted": Mutation(
        "m = len(self.sizes)\n        return math.sqrt(",
        "m = len(self._all_sizes)\n        return math.sqrt(",
        _two_way("noise"),
    ),
    "sensitivity of tables is understated": Mutation(
        'does not depend on the columns."""\n'
        '        return {"zero_out": 1.0, "replace_one": math.sqrt(2)}',
        'does not depend on the columns."""\n        return {"zero_out": 1.0, "replace_one": 1.0}',
        _two_way("sensitivity"),
    ),
    "null records are counted": Mutation(
        "membership[null] = 0",
        "pass",
        _common("check_neighbours", "sliced"),
    ),
    "the shape follows the size of a Poisson sample": Mutation(
        """\
            n_slots = count_slots(n_records, rate)
            positions = noise.poisson_sample(n_records, rate)
""",
        """\
            positions = noise.poisson_sample(n_records, rate)
            n_slots = max(1, len(positions))
""",
        _sampled("shape_and_noise_do_not_tell_how_many_joined"),
    ),
    "slots without a record have no noise": Mutation(
        "return Measurement(exact, scale, std, context=directions, then=then)",
        "return Measurement(exact, scale, std * exact.any((0, 1)), context=directions)",
        _sampled("an_empty_sample_releases_noise_and_is_charged"),
    ),
    "fixed samples for Poisson samples": Mutation(
        "positions = noise.poisson_sample(n_records, rate)",
        "positions = noise.fixed_sample(n_records, round(rate * n_records))",
        _sampled("poisson_samples_are_independent_coins"),
    ),
    "samples that are too large are cut": Mutation(
        "positions = positions[:0]",
        "positions = positions[:n_slots]",
        _sampled("more_records_than_slots_leave_noise_only"),
    ),
    "null records take no slot": Mutation(
        "            if len(positions) > n_slots:",
        """\
            positions = positions[source.take(positions)[1].any(1).numpy()]
            if len(positions) > n_slots:""",
        _sampled("a_null_record_takes_a_slot_and_adds_nothing"),
    ),
    "public maps see the size of a sample": Mutation(
        "encoded = self.encode.on(rows, width=self.n_columns)",
        "encoded = self.encode._function(rows[membership.any(1)]).new_zeros(rows.shape)",
        _sampled("public_maps_see_as_many_rows_however_many_joined"),
    ),
    "joined rows are divided by the largest norm of the batch": Mutation(
        "rows = clip_rows(rows, 1.0)",
        "rows = rows / torch.linalg.vector_norm(rows, dim=1).max().clamp(min=1.0)",
        _sampled("no_row_looks_at_another_when_joined"),
    ),
    "directions are used again": Mutation(
        "generator=noise.public_generator()",
        "generator=np.random.default_rng(0)",
        _sampled("directions_are_fresh_at_each_step"),
    ),
    "sensitivity of sampled rows is understated": Mutation(
        'before it is projected."""\n        return {"zero_out": 1.0, "replace_one": 2.0}',
        'before it is projected."""\n        return {"zero_out": 1.0, "replace_one": 1.0}',
        _sampled("replacing_a_record_in_a_fixed_sample_costs_what_is_certified"),
    ),
    "records of another class cost nothing more": Mutation(
        "return [law, larger._replace(values=larger.values / 2)]",
        "return [law]",
        _sampled("a_record_of_another_class_costs_more_than_one_of_its_own"),
    ),
    "categories that one record holds are shown": Mutation(
        "if count > threshold:",
        "if count > 0:",
        _counts("what_one_record_holds_passes_as_rarely_as_stated"),
    ),
    "the threshold is for one column": Mutation(
        "norm.isf(event.delta / (most * len(self.columns)))",
        "norm.isf(event.delta * 8)",
        _counts("what_one_record_holds_passes_as_rarely_as_stated"),
    ),
    "a threshold costs nothing": Mutation(
        "self._threshold_delta += times * count * leaf.delta",
        "self._threshold_delta += 0.0",
        _counts("price_is_that_of_the_gaussian_at_a_smaller_delta"),
    ),
    "fresh noise at each free step": Mutation(
        "itertools.repeat(curator.release(mechanism))",
        "iter([curator.release(mechanism) for _ in range(n_steps)])",
        _flow("presample_releases_once_and_resample_at_each_step"),
    ),
    "an encoder is fitted on private rows": Mutation(
        "        n_samples, max_rows = records.n_records, records.max_rows\n        n_classes",
        "        n_samples, max_rows = records.n_records, records.max_rows\n"
        "        split_encoder(self.encoder)[0].fit(records._held[0][0])\n        n_classes",
        _flow("public_encoders_are_not_fitted"),
    ),
    "a generated batch of the sample's size": Mutation(
        "return Measurement(exact, scale, std)",
        "return Measurement(exact[: int(joined.sum())], scale, std)",
        _gradients("shape_and_noise_do_not_tell_how_many_joined"),
    ),
    "gradients are clipped row by row": Mutation(
        "torch.linalg.vector_norm(values / largest)",
        "torch.linalg.vector_norm(values / largest, dim=-1, keepdim=True)",
        _gradients("neighbours_are_at_most_twice_the_clip_apart"),
    ),
    "the noise of gradients is Δσ": Mutation(
        "return 2 * grad_clip",
        "return grad_clip",
        _gradients("noise_is_the_multiplier_times_twice_the_clip"),
    ),
    "gradients under replace_one are booked as records of a sum": Mutation(
        'elif sampling == "fixed" or compares_any_two(base, relation)',
        'elif sampling == "fixed"',
        _accounting("three_releases_that_are_alike_far_apart_cost_at_most_what_is_certified"),
    ),
    "moments of a record that is replaced are those of one that is left out": Mutation(
        "return np.r_[0.0, bound]",
        "return alone[: _MAX_SAMPLED_ORDER + 1]",
        _accounting("poisson_moments_under_replace_one_bound_quadrature"),
    ),
    "moments of two records of a sum for any two releases": Mutation(
        "_any_two_log_moment(1 / base.noise_multiplier, rate)",
        "_any_two_log_moment(1 / (2 * base.noise_multiplier), rate)",
        _accounting("moments_of_any_two_of_three_releases"),
    ),
    "what is beyond the grid costs nothing": Mutation(
        "fixed_gap(step, first, last, delta)",
        "fixed_gap(step, first, last, delta - delta[-1])",
        _accounting("losses_beyond_the_grid_count_as_infinite"),
    ),
    "moments in many dimensions are those of the mean": Mutation(
        "-a * np.log1p(-t / b) * (1 + 1e-12)",
        "a * t / b",
        "tests/accounting/test_directions.py::test_moments_in_many_dimensions_are_bounded_closely",
    ),
    "the rounding of two rows costs nothing": Mutation(
        "values=law.values + base.rounding",
        "values=law.values",
        _sampled("rounding_moves_two_rows_apart_by_at_most_what_is_paid_for"),
    ),
    "layers after the aggregate are trained without noise": Mutation(
        "aggregate = self._read(noisy, std)",
        "aggregate = self._read(sums.cpu().numpy() / scale, std)",
        _aggregates("cotangents_are_taken_at_the_noisy_sums"),
    ),
    "cotangents are taken at sums without noise": Mutation(
        "self.cotangent(aggregate)",
        "self.cotangent(self._read(sums.cpu().numpy() / scale, std))",
        _aggregates("cotangents_are_taken_at_the_noisy_sums"),
    ),
    "two sums over one sample are booked as two events": Mutation(
        "weight, w = math.sqrt(self.share), self.count_weight",
        "weight, w = 1.0, self.count_weight",
        _aggregates("both_sums_together_move_by_at_most_what_is_stated"),
    ),
    "products are not clipped": Mutation(
        "weight / norms.clamp(min=radius), 0.0)",
        "weight / radius + 0 * norms, 0.0)",
        _aggregates("both_sums_together_move_by_at_most_what_is_stated"),
    ),
    "products cost nothing": Mutation(
        "bounded_rows(products, self.grad_clip, math.sqrt(1 - self.share))",
        "bounded_rows(products, self.grad_clip, 1.0)",
        _aggregates("a_record_adds_one_vector_of_norm_one_to_both_sums"),
    ),
    "batches of private rows are normalised": Mutation(
        "maps = maps - maps.mean(2, keepdim=True)",
        "maps = maps - maps.mean(0)",
        "tests/generators/test_dpaf.py::test_no_row_looks_at_another",
    ),
    "the radius for the diameter": Mutation(
        "        return 2.0\n",
        "        return 1.0\n",
        "tests/privacy/mechanisms/test_local.py::test_noise_is_calibrated_to_the_diameter",
    ),
    "more clones than there are": Mutation(
        "math.exp(-epsilon_0) * (1 - 1e-12)",
        "math.exp(-epsilon_0) * (1 + 1e-3)",
        "tests/accounting/test_shuffling.py::test_delta_is_that_of_the_theorem",
    ),
    "numbers of clones are counted as the largest of a group": Mutation(
        "return edges[:-1], masses,",
        "return edges[1:] - 1, masses,",
        "tests/accounting/test_shuffling.py::"
        "test_groups_of_clones_are_counted_as_the_smallest_of_each",
    ),
    "rows are noised again in each epoch": Mutation(
        "noised = curator.release(LocalRowsMechanism(format.p))\n",
        "noised = [curator.release(LocalRowsMechanism(format.p)) for _ in range(3)][-1]\n",
        "tests/generators/test_ldp_entropic_gan.py::test_rows_are_noised_once",
    ),
    "the regularisation does not match the noise": Mutation(
        "return p * scale**p if",
        "return scale**p if",
        "tests/generators/test_ldp_entropic_gan.py::test_the_regularisation_matches_the_noise",
    ),
    "noise follows a global seed": Mutation(
        "key = secrets.randbits(256)",
        "key = int(np.random.randint(2**31))",
        _common("check_seeds", "sliced"),
    ),
    "Gaussian noise is drawn in doubles": Mutation(
        "return rounded_sampler(power).draw(scale, self._digits)",
        "if power == 2:\n"
        "            self._digits(1, scale.size)\n"
        "            normal = self._draw().standard_normal(scale.shape)\n"
        "            return np.rint(scale * normal).astype(np.int64)\n"
        "        return rounded_sampler(power).draw(scale, self._digits)",
        "tests/privacy/test_noise.py::test_noise_is_what_its_digits_say[rounded_gaussian]",
    ),
    "digits that were looked at are drawn anew": Mutation(
        "        longer[i] = x\n",
        "        longer[i] = (x[0] >> 64, x[1] - 64) if x[1] > 64 else x\n",
        _samplers("digits_that_were_looked_at_are_kept"),
    ),
    "a point on the curve is taken for one below it": Mutation(
        "under[i] = (y_digits + 1) << precision <= low",
        "under[i] = y_digits << precision <= low",
        _samplers("every_string_of_digits[1-1.7-3-14]"),
    ),
    "the tail is cut off": Mutation(
        "while _digit(1, digits):",
        "while strip < 8 and _digit(1, digits):",
        _samplers("there_is_no_last_value"),
    ),
    "noise is rounded before its digits are known": Mutation(
        "if high <= 2 * unit * (rounded + 1):",
        "if True:",
        _samplers("every_string_of_digits[1-1.7-3-14]"),
    ),
    "coins are rounded": Mutation(
        "if rest > 0 and len(open_ones):",
        "if False:",
        _samplers("coins_have_just_their_probability"),
    ),
    "randomised response is rounded to the unsafe side": Mutation(
        "+ n_classes) * (1 + MARGIN)",
        "+ n_classes) * (1 - MARGIN)",
        "tests/privacy/mechanisms/test_local.py::test_randomised_response_has_the_stated_ratio",
    ),
    "a projection depends on the rows around it": Mutation(
        "largest = rows.abs().amax(1, keepdim=True).clamp(min=1e-200)",
        "largest = rows.abs().amax().reshape(1, 1).clamp(min=1e-200)",
        "tests/transport/test_products.py::test_a_product_follows_from_its_row_alone",
    ),
    "sums of products are rounded": Mutation(
        "_ROW_BITS, _COLUMN_BITS = 24, 28",
        "_ROW_BITS, _COLUMN_BITS = 28, 30",
        "tests/transport/test_products.py::test_products_are_those_of_whole_numbers",
    ),
    "an error quotes a cell": Mutation(
        "        refused = ValueError\n",
        "        raise\n",
        _common("check_failing_fit", "sliced"),
    ),
    "noise follows a seed that was set after it was certified": Mutation(
        "random_state, counter = self._seed",
        "random_state, counter = self.random_state, self._seed[1]",
        "tests/preprocessing/test_local_privatizer.py::test_the_seed_is_the_one_that_was_certified",
    ),
    "inferred classes are called local": Mutation(
        "local=plan.local and not self.is_inferred",
        "local=plan.local",
        "tests/generators/test_ldp_entropic_gan.py::test_inferred_classes_are_not_local",
    ),
    "ε is printed as the nearest number": Mutation(
        "Context(_DIGITS, ROUND_CEILING)",
        "Context(_DIGITS)",
        _figures("what_is_printed_is_never_less"),
    ),
    "a budget is rounded up to a float": Mutation(
        "return nearest if nearest <= number else math.nextafter(nearest, -math.inf)",
        "return nearest",
        _figures("numbers_become_floats_that_are_not_above_them"),
    ),
    "parameters are computed with in their own type": Mutation(
        "setattr(estimator, name, plain(value))",
        "setattr(estimator, name, value)",
        _figures("parameters_are_plain_inside_and_as_given_outside"),
    ),
    "a file may be edited": Mutation(
        "if file.read(_DIGEST) != digest.hexdigest().encode():",
        "if False:",
        "tests/test_saving.py::test_a_file_cannot_contradict_its_certificate",
    ),
    "a file may contradict its certificate": Mutation(
        "if own != certified:",
        "if False:",
        "tests/test_saving.py::test_terms_are_compared_also_where_the_origin_says_the_same",
    ),
    "a file may state less noise than there is": Mutation(
        "if not _is_close(certificate.sigma, sigma):",
        "if False:",
        "tests/test_saving.py::test_the_noise_is_that_of_the_certificate[sketch]",
    ),
    "a budget may be smaller than what was spent": Mutation(
        "if certificate.epsilon > epsilon * (1 + _TOLERANCE):",
        "if False:",
        "tests/test_saving.py::test_terms_are_compared_also_where_the_origin_says_the_same",
    ),
    "parameters may be other than those of the fit": Mutation(
        "if changed := sorted({name for name, _ in fitted.items() ^ given.items()}):",
        "if changed := []:",
        "tests/test_saving.py::test_a_file_cannot_contradict_its_certificate",
    ),
    "what a file says is not checked as it is read": Mutation(
        "            made._check_loaded()\n",
        "            pass\n",
        "tests/test_saving.py::test_a_file_cannot_contradict_its_certificate",
    ),
    "what follows from a certificate is read": Mutation(
        "is_computed = isinstance(getattr(cls, name, None), property)",
        "is_computed = False",
        "tests/test_saving.py::test_a_file_cannot_contradict_its_certificate",
    ),
    "a name may occur twice in a certificate": Mutation(
        "if len(members) < len(pairs):",
        "if False:",
        "tests/accounting/test_signatures.py::test_what_is_signed_says_everything_once",
    ),
    "a certificate may have unknown members": Mutation(
        "if unknown := data.keys() - known.keys():",
        "data = {name: value for name, value in data.items() if name in known}\n"
        "    if unknown := set():",
        "tests/accounting/test_certificate_edits.py::test_all_edits_are_refused_or_seen[full]",
    ),
    "members of a certificate may be anything": Mutation(
        "if not known[name].allows(value):",
        "if False:",
        "tests/accounting/test_certificate_edits.py"
        "::test_what_contradicts_itself_or_says_nothing_is_refused",
    ),
    "a certificate may state a larger price": Mutation(
        "math.isclose(float(stated), cost, rel_tol=_TOLERANCE)",
        "float(stated) >= cost * (1 - _TOLERANCE)",
        "tests/accounting/test_certificate.py"
        "::test_what_follows_from_events_cannot_be_stated_otherwise",
    ),
    "a release may touch no data": Mutation(
        "if not touches_data(event):",
        "if False:",
        "tests/accounting/test_certificate_edits.py"
        "::test_what_contradicts_itself_or_says_nothing_is_refused",
    ),
    "a unit may contradict what is assumed": Mutation(
        "if others in assumptions:",
        "if False:",
        "tests/accounting/test_certificate_edits.py"
        "::test_what_contradicts_itself_or_says_nothing_is_refused",
    ),
    "a digest is not printed": Mutation(
        "if self.digest is not None:",
        "if False:",
        "tests/accounting/test_certificate_edits.py::test_all_that_a_certificate_states_is_printed",
    ),
    "a certificate of nothing is verified": Mutation(
        "if not certificate.events:",
        "if False:",
        "tests/test_command_line.py::test_verify_says_what_is_not_as_it_should_be",
    ),
    "the first record names the columns": Mutation(
        "if not self._has_header:",
        "if False:",
        "tests/test_command_line.py::test_a_table_without_a_header",
    ),
    "ranges of columns weigh more than is stated": Mutation(
        "knot_weights(numbers, self.knots) / math.sqrt(numbers.shape[1])",
        "knot_weights(numbers, self.knots)",
        _open_box("a_record_adds_weights_of_norm_one_at_most[True-4]"),
    ),
    "a network that does not fit is found out after releases": Mutation(
        "    if not format.shares:\n        return  # as it is made\n",
        "    return\n",
        "tests/generators/test_sliced_wasserstein.py::test_a_network_of_a_wrong_size_costs_nothing",
    ),
    "kinds of cells weigh more than is stated": Mutation(
        "Category(levels)))).encode(table)",
        "Category(levels)))).encode(table) * table.shape[1]",
        _inference("a_record_moves_the_counts_of_kinds_by_at_most_what_is_stated"),
    ),
    "what is released follows from what was found": Mutation(
        "            curator.release(_weights(release))\n            return []",
        "            return []",
        _inference("all_is_released_whatever_is_found"),
    ),
    "a bad cell makes others missing": Mutation(
        "_parse_cell(cell, type(schema[name]), style) for",
        "_parse_cell(cell, Date if 'Smith' in set(table[name]) else type(schema[name]), style) for",
        _inference("cells_are_read_one_by_one"),
    ),
    "radii are taken whose squares underflow": Mutation(
        "not 1e-100 <= clip_norm < math.inf",
        "not 0 < clip_norm < math.inf",
        _curator("bad_clip_norm[5e-324]"),
    ),
    "cells of bad labels are counted": Mutation(
        "yield X, self._membership(codes, codes >= 0, null)",
        "yield X, self._membership(codes, codes >= -1, null)",
        _curator("a_bad_label_counts_as_absent_where_cells_are_read[7]"),
    ),
    "the digest is that of the last release": Mutation(
        "        self._digest.add(released)\n",
        "        self._digest = Digest()\n        self._digest.add(released)\n",
        _curator("the_digest_is_of_all_releases_in_their_order"),
    ),
    "the number of rows is told beside that of labels": Mutation(
        '"y must have one entry for each row of X: inconsistent numbers of samples."',
        'f"y must have one entry for each row of X: inconsistent numbers of samples: {n_rows}."',
        "tests/privacy/test_records.py::test_numbers_of_rows_and_labels_are_not_told",
    ),
    "records are held after they were handed over": Mutation(
        "return self._held.pop()",
        "return self._held[-1]",
        "tests/privacy/test_records.py::test_records_are_handed_over_once_and_held_by_nobody_then",
    ),
    "thresholds may take a little more than is set aside": Mutation(
        "if total > self.threshold_delta * (1 + 1e-9):",
        "if total > self.threshold_delta * (1 + 1e-2):",
        "tests/accounting/test_budget.py::test_a_threshold_that_overruns_by_a_millionth_is_refused",
    ),
    "a slower process puts its own budget in place": Mutation(
        "os.link(made, self.path)",
        "os.replace(made, self.path)",
        _budget_files("a_file_that_another_process_has_made_meanwhile_stays"),
    ),
    "digits of a digest may be followed by others": Mutation(
        "and pattern.fullmatch(given) is not None",
        "and pattern.match(given) is not None",
        _strict_json("hexadecimal"),
    ),
    "true is a number of JSON": Mutation(
        "type(given) in (int, float) and abs",
        "isinstance(given, (int, float)) and abs",
        _strict_json("number"),
    ),
    "texts may hold what nobody sees": Mutation(
        "given.isprintable() and ",
        "",
        _strict_json("text"),
    ),
    "verify does not compare δ with the number of records": Mutation(
        "min(_LARGEST_DELTA, 1 / (certificate.n_records or 1))",
        "_LARGEST_DELTA",
        "tests/accounting/test_certificate.py::test_verify_warns_of_a_delta_that_could_cover_whole_records",
    ),
    "errors of arithmetic do not say what was spent": Mutation(
        "except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:",
        "except (MemoryError, RuntimeError, ValueError) as error:",
        "tests/accounting/test_spending.py::test_errors_of_learning_say_what_was_spent[ZeroDivisionError]",
    ),
    "rounding of rows is that of little noise": Mutation(
        "step = max(2.0**-21, 2.0**-39 * self.noise_multiplier)",
        "step = 2.0**-21",
        _accounting("rounded_rows_are_paid_for_on_the_grid_that_they_are_on"),
    ),
    "a budget is rounded to the nearest float": Mutation(
        'or inf for no noise; got {epsilon!r}."\n        )\n    return at_most(epsilon)',
        'or inf for no noise; got {epsilon!r}."\n        )\n    return float(epsilon)',
        "tests/accounting/test_calibration.py::test_budgets_are_never_rounded_up",
    ),
    "parts of a file may have further members": Mutation(
        '        _check_names(node, "is", "of")\n',
        "",
        "tests/test_saving.py::test_parts_of_a_file_have_the_members_that_were_written",
    ),
    "a dict of a file may have a key twice": Mutation(
        "    if len(value) < len(content):\n",
        "    if False:\n",
        "tests/test_saving.py::test_a_dict_has_a_key_once",
    ),
    "a record without a target is of a level": Mutation(
        "known = replace(kind, missing=False)",
        "known = kind",
        "tests/generators/test_tables.py::test_a_record_without_a_target_counts_as_absent",
    ),
    "a bad number beside a row is not looked at": Mutation(
        "            for i, block in enumerate(blocks):\n",
        "            for i, block in enumerate(blocks[:1]):\n",
        _curator("a_bad_number_beside_a_row_makes_it_absent[inf]"),
    ),
    "records are tried in the first place": Mutation(
        "        alone[i] = block[i]\n",
        "        alone[0] = block[i]\n",
        "tests/privacy/test_record_functions.py::test_records_keep_their_places_where_the_function_fails_for_others",
    ),
    "infinite numbers are large ones on the grid": Mutation(
        "trunc_().nan_to_num_(0.0, 0.0, 0.0)",
        "trunc_().nan_to_num_(0.0)",
        "tests/privacy/mechanisms/test_rounding.py::test_what_is_no_number_is_0_on_the_grid",
    ),
    "a fit that ends takes from those that began later": Mutation(
        'WHERE ticket = ?", (_write(events), ticket)',
        'WHERE ticket >= ?", (_write(events), ticket)',
        _budget_files("what_one_fit_has_left_is_taken_from_no_other"),
    ),
    "δ of a certificate is that of another relation": Mutation(
        "self.events, epsilon, accountant=self.accountant, relation=self.relation",
        "self.events, epsilon, accountant=self.accountant",
        "tests/accounting/test_certificate.py::test_readings_are_under_the_relation_and_by_the_accountant",
    ),
    "persons are not said to have identifiers that are unlike": Mutation(
        "of_persons = {ONE_RECORD: (_ONE_IDENTIFIER, _UNLIKE)}",
        "of_persons = {ONE_RECORD: (_ONE_IDENTIFIER,)}",
        "tests/accounting/test_units.py::test_what_a_certificate_for_persons_rests_on",
    ),
    "an error states the price of the last of the fits before": Mutation(
        "spent = compose(*certificates)",
        "spent = certificates[-1]",
        "tests/accounting/test_spending.py::"
        "test_an_error_of_one_of_several_fits_states_what_the_others_cost_together",
    ),
    "whoever leaves takes the muting of all with it": Mutation(
        "        _muted.remove(category)\n",
        "        _muted.clear()\n",
        "tests/test_muting.py::test_threads_stay_muted_until_the_last_one_that_mutes_them_has_left",
    ),
}

# What must not break either: what is learnt, and what is handed back.
FUNCTION = {
    "noise is forgotten where components are sought": Mutation(
        "leading**2 - 2 * std**2 * len(eigenvalues)",
        "leading**2 - 0 * std**2 * len(eigenvalues)",
        _components("what_components_hold_is_estimated[40.0]"),
    ),
    "components are sought among high frequencies": Mutation(
        "matrix[:n_frequencies] for matrix",
        "matrix[-n_frequencies:] for matrix",
        _components("spaces_of_low_frequencies[64-16-sizes0]"),
    ),
    "components of all columns, whatever the noise": Mutation(
        "best = int(np.argmax(held))",
        "best = 0",
        _components("components_of_images_are_smooth_where_there_is_noise[4.0]"),
    ),
    "the last group of levels is one too far": Mutation(
        "group = np.minimum(group.astype(int), n_groups - 1)",
        "group = np.minimum(group.astype(int), n_groups - 2)",
        _interactions("levels_are_joined_by_how_frequent_they_are"),
    ),
    "three-way tables of another column": Mutation(
        "places = [(i, (slice(None), second[d], third[e])) for i, d, e in tables]",
        "places = [(i, (slice(None), second[d], third[thirds[0]])) for i, d, e in tables]",
        _three_way("what_is_released_without_noise[groups]"),
    ),
    "levels of the target are not told apart": Mutation(
        "FEW_LEVELS = 3",
        "FEW_LEVELS = 1",
        _by_level("three_way_tables_with_the_target_are_learnt[DPSWFlowSampler]"),
    ),
    "triples are sought where the target tells records apart": Mutation(
        "and not _may_tell_apart(format)",
        "and True",
        _interactions("where_triples_are_sought[schema1-d-3000-False]"),
    ),
    "triples are sought in noise": Mutation(
        "if _CLEAR * noise <= terms.n_samples / 2:",
        "if noise >= 0:",
        _interactions("where_triples_are_sought[schema2-None-40-False]"),
    ),
    "noise stands out": Mutation(
        "least = max(_CLEAR * chance, _MUCH * n_records)",
        "least = _MUCH * n_records",
        _interactions("triples_that_stand_out_are_found"),
    ),
    "what pairs explain stands out": Mutation(
        "released - n_records * products.mean(0).numpy()",
        "released",
        _interactions("triples_that_stand_out_are_found"),
    ),
    "signs are those of one group": Mutation(
        "shares.sum() * n_groups",
        "shares.sum()",
        _interactions("levels_are_joined_by_how_frequent_they_are"),
    ),
    "training goes on with noisy pairs": Mutation(
        "return replace(tables, cells=cells * (n_records / len(made)), pairs_std=0.0)",
        "return tables",
        _interactions("pairs_of_rows_take_the_place_of_released_ones"),
    ),
    "rows of one level for all": Mutation(
        "torch.eye(len(n_rows)).repeat_interleave(torch.tensor(n_rows), dim=0)",
        "torch.eye(len(n_rows))[:1].repeat(sum(n_rows), 1)",
        _by_level("parts_differ_in_a_network_by_what_they_are_told"),
    ),
    "no level waits for others": Mutation(
        "return torch.where(is_far, gaps, gaps.detach()).sum()",
        "return gaps.sum()",
        _tables("parts_within_their_noise_wait_for_others"),
    ),
    "particles of one level for all": Mutation(
        "start + draw_in_rounds(n_particles, n, generator)",
        "draw_in_rounds(n_particles, n, generator)",
        _by_level("three_way_tables_with_the_target_are_learnt[DPSWFlowSampler]"),
    ),
    "a change of one level shifts all": Mutation(
        "self.offset += change",
        "self.offset += change.mean(0)",
        _by_level("parts_differ_in_a_network_by_what_they_are_told"),
    ),
    "shares of levels are not looked at where tables are compared": Mutation(
        "return self.share**2 * gap",
        "return gap",
        _tables("the_energy_of_the_noise_is_that_of_all_parts"),
    ),
    "the target is put at the end": Mutation(
        "np.hstack([rows[:, : self.start], block, rows[:, self.start :]])",
        "np.hstack([rows, block])",
        _by_level("the_target_is_put_where_it_was"),
    ),
    "shares of levels are equal": Mutation(
        "return RowsByLevel(rows, counts / counts.sum(), tables.by.start)",
        "return RowsByLevel(rows, counts * 0 + 1 / len(counts), tables.by.start)",
        _by_level("levels_are_as_frequent_as_they_were"),
    ),
    "what is impossible for a level keeps its noise": Mutation(
        "alone = impossible[self.by][:, kept]",
        "pass",
        _by_level("impossible_cells_are_put_to_zero[1]"),
    ),
    "ranges are counted in units of the radius": Mutation(
        "            curator.prepare(RecordFunction(format.encode), 1.0)\n            noisy =",
        "            curator.prepare(RecordFunction(format.encode), self.clip_norm)\n"
        "            noisy =",
        _open_box("records_are_counted_whole_whatever_the_radius[0.5]"),
    ),
    "rows are not in units of the radius that is found": Mutation(
        "curator.prepare(RecordFunction(format.encode), format.clip_norm)",
        "curator.prepare(RecordFunction(format.encode), 1.0)",
        _open_box("rows_are_in_units_of_the_radius"),
    ),
    "squared norms weigh more than is stated": Mutation(
        "return knot_weights((rows**2).sum(axis=1), _SQUARES)",
        "return 2 * knot_weights((rows**2).sum(axis=1), _SQUARES)",
        _open_box("a_record_adds_weights_of_its_squared_norm"),
    ),
    "numbers are drawn where they are encoded": Mutation(
        "self.drawn = PlaceScale(self.knots, cuts, places)",
        "self.drawn = PlaceScale(self.knots, cuts)",
        _evening("cuts_part_what_is_drawn_in_equal_shares"),
    ),
    "noise of counts fills tails": Mutation(
        "_MOST = 1.5",
        "_MOST = 15",
        _evening("noise_in_tails_moves_next_to_nothing"),
    ),
    "values about an atom are lost": Mutation(
        'is_free |= getattr(self.kind, "decimals", 0) is None',
        "pass",
        _atoms("values_about_an_atom_that_is_a_knot_are_not_lost"),
    ),
    "a value is an atom only with the share of few knots": Mutation(
        "find_shared(max(n_knots, N_KNOTS))",
        "find_shared(n_knots)",
        _inference("a_value_with_an_eighth_of_all_is_an_atom_with_few_knots"),
    ),
    "few values have neither knots nor atoms": Mutation(
        "if is_few and len(kind.positions) == kind.n_values:",
        "if is_few:",
        _atoms("few_values_all_have_knots_and_no_atoms"),
    ),
    "single values are moved": Mutation(
        "in _find_runs(is_clear & (masses > 0)):",
        "in [(0, len(masses))]:",
        _evening("a_value_beside_what_is_not_clear_stays_where_it_is"),
    ),
    "what is asked for goes by distance where values go by cuts": Mutation(
        "self._values, self._scale = block.values, block.drawn",
        "self._values, self._scale = block.values, type(block.drawn)(block.knots)",
        "tests/formats/test_conditions.py"
        "::test_probabilities_and_draws_are_those_of_rows_that_are_drawn[parts]",
    ),
    "what is asked for goes by where numbers are encoded": Mutation(
        "self._values, self._scale = block.values, block.drawn",
        "self._values, self._scale = block.values, block.scale",
        "tests/formats/test_conditions.py"
        "::test_probabilities_and_draws_are_those_of_rows_that_are_drawn[moved parts]",
    ),
    "pickles in a saved file are run": Mutation(
        "array = np.lib.format.read_array(entry, allow_pickle=False)",
        "array = np.lib.format.read_array(entry, allow_pickle=True)",
        "tests/test_saving.py::test_a_pickle_among_the_arrays_is_not_run",
    ),
    "a privatizer with a seed is saved": Mutation(
        "or self._seed[0] is not None:\n            raise ValueError(\n",
        "and False:\n            raise ValueError(\n",
        "tests/test_saving.py::test_copies_of_a_privatizer_do_not_repeat_its_noise",
    ),
    "a range of a column lacks its lower bound": Mutation(
        "parts = [law.at_most(upper) - law.below(lower)",
        "parts = [law.at_most(upper) - law.at_most(lower)",
        "tests/formats/test_conditions.py"
        "::test_probabilities_and_draws_are_those_of_rows_that_are_drawn[whole]",
    ),
    "objects without a schema are read before they are refused": Mutation(
        '("USmMO" if is_column else "USmM")',
        '"USmM"',
        "tests/generators/test_sliced_wasserstein.py::test_bad_data[text, objects]",
    ),
    "True in a column of objects is a number": Mutation(
        'if isinstance(cell, bool | np.bool_):\n        return "boolean", bool(cell)',
        'if isinstance(cell, bool | np.bool_):\n        return "whole", float(cell)',
        "tests/generators/test_tables.py"
        "::test_stock_objects_come_back_as_what_they_are[bool, None]",
    ),
    "noise is taken for a range": Mutation(
        "max(find_clear(std, n_windows), 1e-9",
        "max(std, 1e-9",
        "tests/formats/test_ranges.py::test_mere_noise_is_seldom_taken_for_values",
    ),
    "a range is as wide as the windows that show it": Mutation(
        "sorted((ends.min(), starts.max()))",
        "(starts.min(), ends.max())",
        "tests/formats/test_ranges.py::test_a_window_is_no_wider_than_what_it_holds",
    ),
    "ranges that do not show are not told": Mutation(
        "if not is_resolved:",
        "if False:",
        _inference("ranges_that_do_not_show_are_told"),
    ),
    "where= looks at the first condition only": Mutation(
        "for c in conditions.values()], axis=0)",
        "for c in list(conditions.values())[:1]], axis=0)",
        _tables("where_looks_at_all_conditions"),
    ),
    "whole numbers are rounded to the nearest": Mutation(
        "is_up = random_state.uniform(size=len(numbers)) * (last - first) < places - first",
        "is_up = 2 * (places - first) >= last - first",
        "tests/formats/test_table_encoder.py"
        "::test_numbers_are_rounded_at_random_so_that_weights_stay",
    ),
    "an atom is taken for the one before": Mutation(
        "places[np.flatnonzero(present)[values == atom]] = position\n",
        "places[np.flatnonzero(present)[values == atom]] = position - 1\n",
        _atoms("an_atom_has_all_weight_of_the_cells_that_have_it"),
    ),
    "an atom beyond a bound that is one is clipped": Mutation(
        "return np.where(np.isin(numbers, self.atoms), numbers, clipped)",
        "return clipped",
        _atoms("a_number_that_is_an_atom_beyond_a_bound_that_is_one_is_its_own"),
    ),
    "others are rounded to atoms": Mutation(
        "knots = Values(self.decimals, self.atoms).around(knots)",
        "knots = Values(self.decimals).around(knots)",
        _atoms("shares_and_means_of_atoms_and_of_others_are_those_of_the_weights[0]"),
    ),
    "between values beside an atom others are rounded to one side": Mutation(
        "* (last - first) < places - first",
        "* (scale.encode_cells((whole + 1) / self.unit) - first) < places - first",
        _atoms("shares_and_means_of_atoms_and_of_others_are_those_of_the_weights[1]"),
    ),
    "atoms are clipped to the bounds": Mutation(
        "            numbers[others == position] = atom\n",
        "            numbers[others == position] = np.clip(atom, *self.knots[[0, -1]])\n",
        _atoms("atoms_alone_are_drawn_as_they_are"),
    ),
    "a range leaves the atoms in it out": Mutation(
        "self._atoms |= atoms",
        "self._atoms |= set()",
        "tests/formats/test_conditions.py"
        "::test_probabilities_and_draws_are_those_of_rows_that_are_drawn[atom]",
    ),
    "conditions round as if there were no atoms": Mutation(
        "after = self._values.after(values)\n",
        "after = values + (0.0 if self._values.unit is None else 1 / self._values.unit)\n",
        "tests/formats/test_conditions.py"
        "::test_probabilities_and_draws_are_those_of_rows_that_are_drawn[beside]",
    ),
    "a frequent value is an atom whatever is beside it": Mutation(
        "is_atom = self._at_atoms - _MORE_THAN_BESIDE * beside > least",
        "is_atom = self._at_atoms > least",
        _atoms("a_value_as_frequent_as_those_beside_it_is_none"),
    ),
    "what was found beyond a range is lost": Mutation(
        "np.maximum(density[before], density[after + 1]) * ~is_beyond",
        "np.maximum(density[before], density[after + 1])",
        _atoms("what_was_found_beyond_the_range_of_all_others_stays"),
    ),
    "the first value is half as wide as others": Mutation(
        "widths[[0, -1]] += unit / 2",
        "widths[[0, -1]] += 0",
        _atoms("the_first_value_is_as_wide_as_others[3500-atoms0]"),
    ),
    "a tail that the wide grid shows is cut": Mutation(
        "is_empty &= sums <= _WITHIN * std",
        "is_empty &= sums <= 9 * _WITHIN * std",
        "tests/formats/test_ranges.py"
        "::test_a_range_is_not_narrowed_past_what_the_wide_grid_shows[30-expected0]",
    ),
    "a rare level is judged by all records": Mutation(
        "signals = [find_signal(cells, tables.pairs_std) for cells in tables.cells]",
        "signals = [find_signal(tables.cells, tables.pairs_std) for cells in tables.cells]",
        "tests/learners/test_levels.py"
        "::test_a_rare_level_whose_tables_are_noise_is_warned_of[30-True]",
    ),
    "nothing tells values that many share on the finer grid": Mutation(
        "masses = (whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2",
        "masses = whole",
        _inference("a_finer_grid_tells_a_value_that_many_share[250-0.1-100.0]"),
    ),
    "values of a knot are drawn by cuts beside it": Mutation(
        "or at_ends > _FAR_MORE * shares[-1]:",
        "or at_ends < 0:",
        "tests/formats/test_ranges.py"
        "::test_cuts_do_not_part_the_values_of_a_knot_that_has_far_more[900-0]",
    ),
    "an atom is taken for a tail": Mutation(
        "np.where(is_near, 0.0, self.counts)",
        "self.counts",
        _inference("an_atom_that_only_the_finer_grid_shows_is_no_tail[250]"),
    ),
    "what rules leave out is taken for noise": Mutation(
        "noisy = numbers[numbers != 0]",
        "noisy = numbers",
        "tests/test_quality.py::test_mostly_noise[0.9-True]",
    ),
    "levels of a target take no rows of their own": Mutation(
        "len(format.schema) * n_parts)",
        "len(format.schema))",
        "tests/test_few_rows.py::test_each_level_of_a_target_takes_as_many_rows[ab-2]",
    ),
    "values that many share coarsen the finer grid": Mutation(
        "masses = (whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2",
        "pass",
        "tests/formats/test_ranges.py::test_a_finer_grid_is_fine_where_few_values_share_nearly_all",
    ),
    "there must be others": Mutation(
        "if signal < LEAST_SIGNAL and level != other",
        "if signal < LEAST_SIGNAL",
        "tests/test_quality.py::test_levels_of_which_there_are_few",
    ),
    "noise is taken for cells that are lost": Mutation(
        "if lost > least * math.sqrt(sum(is_lost))",
        "if lost > 0",
        _inference("cells_that_are_lost_are_warned_of[0-False]"),
    ),
    "noise is taken for atoms": Mutation(
        "find_clear(self.std, len(beside))",
        "find_clear(0, len(beside))",
        _atoms("a_value_with_more_than_its_surroundings_is_an_atom[0-0]"),
    ),
    "what is no atom is lost": Mutation(
        "counts = self._near * is_free + self._at_atoms[is_left] @",
        "counts = self._near * is_free + 0 * self._at_atoms[is_left] @",
        _atoms("counts_of_what_is_no_atom_go_to_the_knots_around_it"),
    ),
    "special values beyond a range are forgotten": Mutation(
        "*found, *inside, *bounds",
        "*inside, *bounds",
        _inference("special_values_are_atoms_beyond_the_range_of_all_others"),
    ),
    "symlog knots are those of log": Mutation(
        'if scale == "symlog":',
        'if scale == "symlog" and lower < -upper:',
        "tests/formats/test_schema.py::test_symlog_knots_are_even_on_either_side_of_zero",
    ),
    "noise far out makes a tail": Mutation(
        "_WITHIN * std * np.sqrt(sizes), sums, 0)",
        "0 * np.sqrt(sizes), sums, 0)",
        "tests/formats/test_ranges.py::test_noise_is_not_taken_for_a_tail",
    ),
    "tails have no knots": Mutation(
        "return np.unique(np.r_[lower, found, upper])",
        "return np.unique(found)",
        "tests/formats/test_ranges.py::test_long_tails_get_knots_that_grow_apart",
    ),
    "knots far out are drawn from noise": Mutation(
        "spare[where.start : where.start + len(is_far)] = is_far",
        "spare[where.start : where.start + len(is_far)] = False",
        _atoms("knots_far_out_may_be_left_empty_but_no_atom_is"),
    ),
    "the last atom is taken for the last knot": Mutation(
        'knots, atoms = np.split(shares[: row["n_levels"]], [len(kind.positions)])',
        'knots = atoms = shares[: row["n_levels"]]',
        "tests/generators/test_schema_report.py::test_atoms_have_shares_of_their_own",
    ),
    "levels are not matched after the training": Mutation(
        "change = (shares / made).log()",
        "change = 0 * (shares / made).log()",
        _tables("levels_become_as_frequent_as_they_were_released"),
    ),
    "as many knots, whatever the noise of tables": Mutation(
        "most = min(most, round(math.sqrt(curator.n_rows / (_CELL * noise))))",
        "pass",
        _inference("as_many_knots_as_the_noise_of_tables_lets_one_see[2-11]"),
    ),
    "what is beside a value that many share is one, too": Mutation(
        "is_next = np.isclose(np.diff(self.knots), 10.0**-self.kind.decimals)",
        "is_next = np.diff(self.knots) > 0",
        _atoms("values_beside_it_are_not_taken_for_it"),
    ),
    "values that many share stay among the others": Mutation(
        "counts = self._near * is_free + ",
        "counts = self._near + ",
        _atoms("a_value_that_holds_the_share_of_a_knot_is_an_atom_too"),
    ),
    "the weight of classes is ignored": Mutation(
        "if class_align_weight:",
        "if False:",
        _aligning("the_weight_of_classes_brings_their_means_together"),
    ),
    "what is like the target is ignored": Mutation(
        "kinds = [] if seen is None else [seen]",
        "kinds = []",
        _aligning("what_is_like_the_target_is_learnt_from_and_compared"),
    ),
    "domains are compared by what the target lacks": Mutation(
        "encoded = encode(part)\n            loss = loss + cross_entropy(head(encoded), labels)",
        "loss = loss + cross_entropy(head(encode(part)), labels)",
        _aligning("what_is_like_the_target_is_learnt_from_and_compared"),
    ),
    "weights are not averaged": Mutation(
        "torch.lerp(current, averaged, min(memory,",
        "torch.lerp(current, averaged, min(0.0,",
        "tests/generators/test_sinkhorn_generator.py::test_averaging_is_the_memory_of_the_weights",
    ),
    "annealing is ignored": Mutation(
        "max(_ANNEALED * n_steps, 1.0)",
        "max(0.5 * n_steps, 1.0)",
        _flow("annealing_is_the_share_of_steps_in_which_they_shorten"),
    ),
    "the head learns that fakes are real": Mutation(
        "verdict(fake + known.std * noise, is_real=False)",
        "verdict(fake + known.std * noise, is_real=True)",
        "tests/generators/test_dpaf.py::test_the_head_learns_to_tell_what_is_real",
    ),
    "the bootstrap is not shrunk": Mutation(
        "drawn[chosen] = mean + moved / math.sqrt(1 + _JITTER**2)",
        "drawn[chosen] = mean + moved",
        _flow("the_bootstrap_is_shrunk_by_what_the_jitter_adds"),
    ),
    "a label apart comes back as an object": Mutation(
        '{label: getattr(y, "dtype", None), **head.dtypes}',
        "{**head.dtypes}",
        _tables("a_label_apart_keeps_its_dtype"),
    ),
    "diffusion by √(λh)": Mutation(
        "math.sqrt(2 * diffusion * step_size)",
        "math.sqrt(diffusion * step_size)",
        _flow("a_step_of_the_flow_diffuses_by_its_length"),
    ),
    "one unit of zeros too many": Mutation(
        "1 / max(share, 1e-3) - 1)",
        "1 / max(share, 1e-3))",
        _flow("particles_of_a_class_have_as_many_zeros_as_records_have"),
    ),
    "groups of labels weigh the same": Mutation(
        "torch.as_tensor(seen[labels] / len(codes), dtype",
        "torch.as_tensor(np.full(len(labels), 1 / len(labels)), dtype",
        "tests/generators/test_ldp_entropic_gan.py"
        "::test_groups_of_labels_weigh_as_many_rows_as_they_have",
    ),
    "decimals are counted by no event where kinds are found": Mutation(
        "(bool(self._rough) or (is_any and not has_decimals))",
        "bool(self._rough)",
        "tests/formats/test_inference.py::test_all_is_released_whatever_is_found",
    ),
    "cells of numbers follow each other": Mutation(
        "enough[is_known & fits] = decimals",
        "enough[is_known & fits.all()] = decimals",
        "tests/formats/test_decimals.py::test_each_cell_is_counted_on_its_own",
    ),
    "spare levels that nobody has are generated": Mutation(
        "logits.masked_fill(self.is_empty, -torch.inf)",
        "logits",
        "tests/generators/test_schema_report.py"
        "::test_spare_levels_within_noise_are_never_generated[particles]",
    ),
    "--relation is ignored": Mutation(
        'choices=["zero_out", "replace_one"], default="zero_out")\n    command',
        'type=lambda text: "zero_out", default="zero_out")\n    command',
        _command_line("the_relation_is_the_one_that_is_asked_for[replace_one]"),
    ),
    "old rows stay beside a new certificate": Mutation(
        "for target in reversed(targets):\n            if os.path.exists(target):",
        "for target in reversed(targets):\n            if False:",
        "tests/cli/test_outputs.py::test_rows_are_never_beside_the_certificate_of_others[old]",
    ),
    "a hard link to the private table is overwritten": Mutation(
        "and os.path.samefile(path, other)",
        "and False",
        "tests/cli/test_outputs.py::test_what_makes_no_sense_is_refused_before_anything_is_read",
    ),
    "what a column is said to be is not checked": Mutation(
        "    elif not fits:\n",
        "    elif False:\n",
        "tests/cli/test_options.py::test_it_stops_where_a_column_is_not_what_it_was_said_to_be",
    ),
    "a point among commas for decimals is one": Mutation(
        "if not style.has_python_numbers:",
        "if False:",
        "tests/formats/test_texts.py::test_declared_columns_are_read_in_the_style_of_the_file",
    ),
    "each piece of rows has the same seed": Mutation(
        "None if seed is None else np.random.RandomState(seed)",
        "seed",
        "tests/cli/test_options.py::test_a_seed_gives_the_same_rows_and_says_so",
    ),
    "an empty piece after the last": Mutation(
        "left -= largest\n        if left <= 0:",
        "left -= largest\n        if left < 0:",
        _command_line("long_tables_are_read_and_written_in_pieces"),
    ),
    "a declared level NA is missing": Mutation(
        "levels.get(c, None if c in MISSING_TEXTS else c)",
        "None if c in MISSING_TEXTS else levels.get(c, c)",
        "tests/formats/test_texts.py::test_declared_levels_are_no_missing_values",
    ),
    "a numeric y is decoded without the radius": Mutation(
        "rows, y = rows[:, :-1], rows[:, -1:]\n            if self.y_bounds",
        "rows, y = rows[:, :-1], rows[:, -1:] / self.clip_norm\n            if self.y_bounds",
        _arrays("rows_are_decoded_from_the_unit_ball"),
    ),
    "a numeric y is decoded without the local radius": Mutation(
        "X, y = self.invert(rows * self.radius)\n",
        "X, y = self.invert(rows * self.radius)[0], self.invert(rows)[1]\n",
        _arrays("local_rows_are_decoded_from_the_unit_ball"),
    ),
    "a score by one projection": Mutation(
        "format.encode(synthetic), random_state=0",
        "format.encode(synthetic), n_projections=1, random_state=0",
        "tests/test_base.py::test_a_score_looks_along_many_directions",
    ),
    "fractions are whole numbers of a column of integers": Mutation(
        'numbers = whole + number * (expected != "integer")',
        "numbers = whole + number",
        _inference("numbers_with_fractions_are_no_integers"),
    ),
    "blanks are a category of texts that were found": Mutation(
        'counts = {c: n for c, n in counts.items() if read_cell(c)[0] != "missing"}',
        "counts = {c: n for c, n in counts.items()}",
        _inference("blanks_are_no_category_of_a_column_that_was_found"),
    ),
    "codes have two digits": Mutation(
        're.compile(r"0[0-9]+")',
        're.compile(r"0[0-9]")',
        _inference("digits_after_a_zero_are_codes"),
    ),
    "bounds may be further off than numbers are looked for": Mutation(
        "return refined if _is_within_reach(refined) else kind",
        "return refined",
        "tests/formats/test_decimals.py::test_bounds_may_be_too_far_from_zero_for_the_decimals",
    ),
}

RULES = {
    "an implication holds both ways": Mutation(
        "~all_hold(when, values) | all_hold(then, values)",
        "all_hold(when, values) == all_hold(then, values)",
        _rules("what_holds_is_told_row_by_row"),
    ),
    "one of several conditions is enough": Mutation(
        "return np.all([c.holds(values[name])",
        "return np.any([c.holds(values[name])",
        _rules("what_holds_is_told_row_by_row"),
    ),
    "a strict order lets equal values pass": Mutation(
        "lower >= upper if self.strict else",
        "lower > upper if self.strict else",
        _rules("what_holds_is_told_row_by_row"),
    ),
    "missing values break an order": Mutation(
        "~(lower >= upper if self.strict else lower > upper)",
        "(lower < upper if self.strict else lower <= upper)",
        _rules("missing_values_obey_orders_and_are_no_repetition"),
    ),
    "a derived column is not rounded": Mutation(
        "found if decimals is None else np.round(found, decimals) + 0.0",
        "found",
        _rules("a_number_may_be_derived_from_dates_and_a_date_from_a_number"),
    ),
    "a derived column leaves its bounds": Mutation(
        "is_same & is_within",
        "is_same",
        _rules("derived_columns_stay_within_their_bounds_and_divisions_by_zero_are_missing"),
    ),
    "a derived column is learnt": Mutation(
        "if name not in made and not isinstance(kind, Identifier)",
        "if not isinstance(kind, Identifier)",
        _rules("derived_columns_are_not_learnt"),
    ),
    "a second of a date is a day": Mutation(
        'return _SECONDS if getattr(kind, "unit", None) == "second" else 1',
        "return 1",
        _rules("dates_count_in_days_whatever_their_unit"),
    ),
    "formulas take powers": Mutation(
        '_SIGNS = {ast.Add: "+"',
        '_SIGNS = {ast.Pow: "*", ast.Add: "+"',
        "tests/formats/test_rules.py::test_what_is_no_formula_is_refused[a ** 2]",
    ),
    "formulas take true and false": Mutation(
        "type(node.value) in (int, float)",
        "isinstance(node.value, int | float)",
        "tests/formats/test_rules.py::test_what_is_no_formula_is_refused[a + True]",
    ),
    "a quotient has the range of a product": Mutation(
        'if sign == "/" and right[0] <= 0 <= right[1]:',
        "if False:",
        _rules("the_range_of_a_formula_holds_all_its_values"),
    ),
    "a drop leaves a formula without an operand": Mutation(
        "if lacking and self.column in names:",
        "if False:",
        _rules("columns_that_are_left_keep_what_rules_say_of_them"),
    ),
    "other kinds lose the rules": Mutation(
        "return Schema({**self, **kinds}, self.rules)",
        "return Schema({**self, **kinds})",
        _rules("columns_that_are_left_keep_what_rules_say_of_them"),
    ),
    "orders are not followed from column to column": Mutation(
        "if rule.lower == last and rule not in chain:",
        "if False:",
        "tests/formats/test_rules.py::test_rules_that_cannot_be_obeyed_are_refused[circle]",
    ),
    "a level that is lost is no contradiction": Mutation(
        "if lost or not len(both):",
        "if not len(both):",
        _rules("small_schemas_are_refused_just_where_brute_force_finds_a_contradiction"),
    ),
    "what only one rule excludes is a contradiction": Mutation(
        "return set.intersection(*(",
        "return set.union(*(",
        _rules("small_schemas_are_refused_just_where_brute_force_finds_a_contradiction"),
    ),
    "each draw of a broken row has another code": Mutation(
        "drawn, values = self._draw_once(weights[left], random_state)",
        "drawn, values = self._draw_once(weights[: len(left)], random_state)",
        _rules("rows_are_drawn_again_by_their_own_code"),
    ),
    "combinations are equally likely": Mutation(
        "likely = np.prod([p[:, c] for p, c in zip(parts, codes, strict=True)], axis=0)",
        "likely = np.ones((len(weights), len(codes[0])))",
        _rules("the_law_under_rules_is_that_of_the_model_given_the_code"),
    ),
    "ordered columns are drawn on their own": Mutation(
        "is_often = _break_order(*pair, weights) > _OFTEN",
        "is_often = _break_order(*pair, weights) > 2",
        _rules("an_order_leaves_the_laws_of_its_columns"),
    ),
    "conditions are forgotten where a row is drawn again": Mutation(
        "(condition or self.conditions.get(name, block))",
        "(condition or block)",
        _rules("conditions_and_rules_hold_together"),
    ),
    "rows of earlier pieces are forgotten": Mutation(
        "earlier = pd.concat([self._draws.used.get(rule), keys[obey & ~is_new]])",
        "earlier = keys[obey & ~is_new]",
        _rules("values_stay_different_from_piece_to_piece_until_there_are_no_more"),
    ),
    "what is rare is never mended": Mutation(
        "group.draw(weights, random_state, i >= _MENDED)",
        "group.draw(weights, random_state, False)",
        _rules("rules_that_codes_nearly_exclude_are_met_all_the_same"),
    ),
    "impossible pairs are those of one order only": Mutation(
        "impossible[columns, rows] |= cells.T",
        "pass",
        _rules("impossible_pairs_are_those_that_no_row_has_which_obeys"),
    ),
    "a knot at the end of a range is outside of it": Mutation(
        "is_apart = (above <= lower) & (block.knots < lower)",
        "is_apart = block.knots <= lower",
        _rules("impossible_pairs_are_those_that_no_row_has_which_obeys"),
    ),
    "values that differ in all rows do so in a piece": Mutation(
        "largest = n_rows if is_whole else _PIECE",
        "largest = _PIECE",
        "tests/cli/test_options.py::test_what_is_different_in_all_rows_is_written_at_once",
    ),
    "each part of a sample has the same identifiers": Mutation(
        "return self.kind.give(go_on(rows, self.schema, 0))",
        "return self.kind.give(rows)",
        "tests/generators/test_rules.py::test_rows_that_are_asked_for_obey_too",
    ),
}

# Several rows of a person.
ENGINES = {
    "a certificate does not say who added up": Mutation(
        "engine=self._engine)",
        "engine=None)",
        _engines("partitions_give_what_the_table_gives[sketch-DPSWFlowSampler]"),
    ),
    "what a worker raises is quoted": Mutation(
        "failure = type(error).__name__",
        "failure = str(error)",
        _engines("what_a_worker_says_is_dropped"),
    ),
    "what a worker raises is the cause": Mutation(
        "            failure = type(error).__name__",
        "            raise RuntimeError('workers failed (KeyError)') from error",
        _engines("what_a_worker_says_is_dropped"),
    ),
    "one partition counts": Mutation(
        "[reduce(operator.add, there + part)]",
        "[reduce(operator.add, part or there)]",
        _engines("partitions_give_what_the_table_gives"),
    ),
    "a failed partition counts as empty": Mutation(
        "        if part is None:\n            return None\n        there",
        "        if part is None:\n            continue\n        there",
        _engines("a_failure_after_a_release_says_what_was_spent"),
    ),
    "persons are told by positions of partitions": Mutation(
        "if not isinstance(persons, str):\n            raise ValueError(\n",
        "if False:\n            raise ValueError(\n",
        _engines("what_cannot_be_is_refused_before_a_row_is_read"),
    ),
    "rows of a person are bounded within partitions": Mutation(
        "self._parts = frame if person_column is None else self._gather(_name_once())",
        "self._parts = frame",
        _engines("rows_of_a_person_are_bounded_across_partitions[stops1-1]"),
    ),
    "rows of persons in partitions are not bounded": Mutation(
        "part = RecordSource(rows, None, persons=persons, **known)",
        "part = RecordSource(rows, None, **known)",
        _engines("rows_of_a_person_are_bounded_across_partitions[stops0-3]"),
    ),
    "persons in partitions move sums as records do": Mutation(
        "largest_change(self.sensitivity, relation, source.max_rows)",
        "largest_change(self.sensitivity, relation)",
        _engines("rows_of_a_person_are_bounded_across_partitions[stops0-3]"),
    ),
    "each partition chooses by another key": Mutation(
        '"key": self._key,',
        '"key": bytes(32),',
        _engines("persons_in_partitions_give_what_the_table_gives[stops0-1]"),
    ),
    "equal identifiers are brought to different places": Mutation(
        "        text = str.strip(name)\n",
        "        text = name\n",
        _engines("of_equal_numbers_and_texts_in_other_partitions_one_person_is_made"),
    ),
    "engines take tables without a schema": Mutation(
        "if isinstance(X, PartitionedTable) and self.schema is None:",
        "if False:",
        _engines("what_cannot_be_is_refused_before_a_row_is_read"),
    ),
}

# Several owners of rows.
OWNERS = {
    "owners add no noise": Mutation(
        "share = noise.rounded_gaussian(std)",
        "share = 0 * noise.rounded_gaussian(std)",
        _owners("noise_is_shared"),
    ),
    "a share of the noise is too small": Mutation(
        "std * ((1 + 2.0**-50) / math.sqrt(n_shares))",
        "std * ((1 + 2.0**-50) / n_shares)",
        _owners("noise_is_shared"),
    ),
    "shares of who drops out count": Mutation(
        "return self.n_owners - self.n_dropouts - self.n_colluding",
        "return self.n_owners - self.n_colluding",
        _sharing("shares_that_count"),
    ),
    "shares of who colludes count": Mutation(
        "return self.n_owners - self.n_dropouts - self.n_colluding",
        "return self.n_owners - self.n_dropouts",
        _sharing("shares_that_count"),
    ),
    "shares may be less than a step of the grid": Mutation(
        "if (std[std > 0] < LEAST_SHARE).any():",
        "if False:",
        _owners("numbers_without_noise_are_told_to_nobody"),
    ),
    "numbers without noise are told": Mutation(
        "share += np.where(std > 0, measured.exact, 0)",
        "share += measured.exact",
        _owners("numbers_without_noise_are_told_to_nobody"),
    ),
    "noise of owners follows from a seed": Mutation(
        "set_params(random_state=None, verbose=0)",
        "set_params(verbose=0)",
        _owners("a_seed_of_the_generator_seeds_no_noise"),
    ),
    "sums are said to be closer than they are": Mutation(
        "exponent = 2 * math.pi**2 *",
        "exponent = 4 * math.pi**2 *",
        _sharing("sums_are_as_close_to_rounded_sums_as_is_said[0.8-2]"),
    ),
    "shared noise is priced as more": Mutation(
        "visit(GaussianDpEvent(event.noise_multiplier), count)",
        "visit(GaussianDpEvent(1.1 * event.noise_multiplier), count)",
        _sharing("the_price_is_that_of_the_shares_that_count[pld]"),
    ),
    "a certificate does not say that noise was shared": Mutation(
        "return replace(plan, releases=((name, shared),))",
        "return plan",
        _sharing("shares_that_count"),
    ),
    "a certificate does not say what shares rest on": Mutation(
        "return (*shared, *inferred,",
        "return (*inferred,",
        _owners("the_certificate_names_what_was_done"),
    ),
    "owners have no masks of their own": Mutation(
        "ravel() + expand(self._own_seed, share.size)",
        "ravel() + expand(self._own_seed, share.size) * np.uint64(0)",
        _owners("who_comes_late_stays_masked"),
    ),
    "owners share no masks": Mutation(
        "masked += mask if self.position < other else -mask",
        "masked += mask * np.uint64(0)",
        _owners("what_is_sent_is_as_random_numbers"),
    ),
    "owners who stayed are unmasked one by one": Mutation(
        "lost = set(self._keys) - stayed",
        "lost = set(self._keys) - {self.position}",
        _owners("who_comes_late_stays_masked"),
    ),
    "the server closes a sum of too few": Mutation(
        "if len(self._stayed) < sharing.min_samples:",
        "if not self._stayed:",
        _owners("the_server_closes_no_sum_of_too_few"),
    ),
    "owners unmask a sum of too few": Mutation(
        "or len(stayed) < needed:",
        "or not stayed:",
        _owners("more_dropouts_than_agreed_abort_before_unmasking"),
    ),
    "owners unmask twice": Mutation(
        "self._has_unmasked = True",
        "self._has_unmasked = False",
        _owners("who_drops_out_after_the_sum_leaves_it_masked"),
    ),
    "owners contribute twice": Mutation(
        "        if self._keys is not None:\n            raise PlanError",
        "        if False:\n            raise PlanError",
        _owners("an_owner_contributes_once"),
    ),
    "who gave no key contributes": Mutation(
        "contribution.position not in self._taking or",
        "",
        _owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "an owner need not see its own key": Mutation(
        "if public_keys.get(self.position) != self.public_key:",
        "if False:",
        _owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "owners unmask sums of who gave no key": Mutation(
        "or not stayed <= set(self._keys) or",
        "or",
        _owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "owners unmask sums that they are not in": Mutation(
        "if self.position not in stayed or",
        "if",
        _owners("lists_of_who_stayed_that_are_not_unmasked[stayed3]"),
    ),
    "two owners may have one key": Mutation(
        "if len(set(public_keys.values())) < len(public_keys):",
        "if False:",
        _owners("bad_keys_are_refused_before_a_row_is_read[repeated]"),
    ),
    "few keys are enough": Mutation(
        "if len(public_keys) < joint.sharing.min_samples:",
        "if not public_keys:",
        _owners("bad_keys_are_refused_before_a_row_is_read[of too few]"),
    ),
    "keys are agreed on after rows are read": Mutation(
        "        seeds = {other: self._agree(key) for other, key in others.items()}\n"
        "        self._keys = dict(public_keys)\n"
        "        share = make_share(self.joint, X)\n",
        "        self._keys = dict(public_keys)\n"
        "        share = make_share(self.joint, X)\n"
        "        seeds = {other: self._agree(key) for other, key in others.items()}\n",
        _owners("keys_with_which_everybody_has_the_same_secret_are_refused[00000000]"),
    ),
    "the certificate does not say that the server is trusted": Mutation(
        '"the server is trusted to follow the protocol: ',
        '"the server follows the protocol: ',
        _owners("a_server_that_lies_about_who_stayed_is_trusted_not_to"),
    ),
    "numbers that come late are added": Mutation(
        "if self._lost is not None:",
        "if False:",
        _owners("who_comes_late_stays_masked"),
    ),
    "owners need not agree": Mutation(
        "contribution.digest != self.joint.digest",
        "False",
        _owners("owners_agree_on_all_that_is_public[other1]"),
    ),
    "grids of owners follow from their own rows": Mutation(
        "self.sharing, self.n_units = joint.sharing, joint.n_records",
        "self.sharing, self.n_units = joint.sharing, len(frame) or joint.n_records",
        _owners("the_grid_follows_from_the_number_of_all_rows"),
    ),
    "owners of two versions agree": Mutation(
        "repr([__version__, *words])",
        "repr(words)",
        _owners("owners_of_two_versions_do_not_agree"),
    ),
}

# Vectors of many numbers that are rounded to nearest.
ROUNDING = {
    "vectors": Mutation(
        "(scale * (1 - MARGIN))).trunc_()",
        "(scale * (1 - MARGIN))).round_()",
        _rounding("Gaussian sum-1000000-20"),
    ),
    "sums": Mutation(
        "vectors = to_grid(clip_rows(vectors, self.radius), scale)",
        "vectors = (clip_rows(vectors, self.radius) * (1 - MARGIN) * scale).round()",
        _rounding("Gaussian sum of radius 3-100003-20"),
    ),
    "second moments": Mutation(
        "whole = to_grid(rows, half) *",
        "whole = (rows * (1 - MARGIN) * half).round() *",
        _rounding("second moments-1000000-20"),
    ),
    "two-way tables": Mutation(
        "to_whole = partial(to_grid, scale=half / math.sqrt(self.records))",
        "to_whole = lambda rows: (rows * ((1 - 1e-5) * half / math.sqrt(self.records))).round()",
        _rounding("two-way tables-1000000-20"),
    ),
    "three-way tables": Mutation(
        "product = to_grid(pairs.flatten(1), half).T",
        "product = (pairs.flatten(1) * ((1 - 1e-5) * half)).round().T",
        _rounding("three-way tables-10000-20"),
    ),
    "gradients": Mutation(
        "exact = to_grid(clip_whole(gradient, self.grad_clip), scale)",
        "exact = (clip_whole(gradient, self.grad_clip) * ((1 - 1e-5) * scale)).round()",
        _rounding("clipped gradient-100003-20"),
    ),
    "features": Mutation(
        "to_grid(self._join(features), scale)",
        "(self._join(features) * ((1 - 1e-5) * scale)).round().double()",
        _rounding("features in float32-100003-20"),
    ),
    "products": Mutation(
        "(one_hot.sum(1) @ to_grid(bounded, scale))",
        "(one_hot.sum(1) @ (bounded * ((1 - 1e-5) * scale)).round().double())",
        _rounding("products in float32-100003-20"),
    ),
    "products beside slices": Mutation(
        "(membership.sum(1) @ to_grid(bounded, scale))",
        "(membership.sum(1) @ (bounded * ((1 - 1e-5) * scale)).round().double())",
        _rounding("products beside slices-100003-20"),
    ),
    "slices": Mutation(
        "projected = to_grid(directions.T.to(joined.device) @ joined.T, scale)",
        "projected = (directions.T @ joined.T * ((1 - 1e-5) * scale)).round()",
        "tests/privacy/mechanisms/test_rounding.py::test_projections_are_no_longer_than_before"
        "[10000-2]",
    ),
    "local rows": Mutation(
        "parts.append(to_grid(rows, scale)",
        "parts.append((rows * ((1 - 1e-5) * scale)).round()",
        _rounding("local rows, L1-10000-20"),
    ),
}
ROUNDING = {f"{name} are rounded to nearest": mutation for name, mutation in ROUNDING.items()}

SECRETS = {
    "a key is stretched": Mutation(
        "key = secrets.randbits(256)",
        "key = int.from_bytes(__import__('hashlib').sha256(secrets.token_bytes(4)).digest())",
        _secrets("keys_are_what_the_operating_system_gave"),
    ),
    "a key follows from the process": Mutation(
        "key = secrets.randbits(256)",
        "key = int.from_bytes(__import__('hashlib').sha256(b'%d' % os.getpid()).digest())",
        _secrets("each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are[key of the noise]"),
    ),
    "rows of persons are hashed with 32 bits": Mutation(
        "return self._draw().bytes(32)",
        "return self._draw().bytes(4) * 8",
        _secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[key of the hashes of persons]"
        ),
    ),
    "an owner's mask has 32 bits": Mutation(
        "self._own_seed = secrets.token_bytes(32)",
        "self._own_seed = hashlib.sha256(secrets.token_bytes(4)).digest()",
        _secrets("keys_are_what_the_operating_system_gave"),
    ),
    "an owner's mask follows from its position": Mutation(
        "self._own_seed = secrets.token_bytes(32)",
        "self._own_seed = hashlib.sha256(b'%d' % position).digest()",
        _secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of an owner's own mask]"
        ),
    ),
    "a mask follows from half of its seed": Mutation(
        'ChaCha(key=int.from_bytes(seed, "little"), rounds=20).random_raw(n)',
        'ChaCha(key=int.from_bytes(seed[:16], "little"), rounds=20).random_raw(n)',
        _secrets("each_bit_of_a_key_changes_the_stream[masks]"),
    ),
    "noise has fewer rounds": Mutation(
        "ChaCha(key=key, rounds=20)",
        "ChaCha(key=key, rounds=8)",
        _secrets("streams_are_those_of_chacha20"),
    ),
    "masks have fewer rounds": Mutation(
        'ChaCha(key=int.from_bytes(seed, "little"), rounds=20)',
        'ChaCha(key=int.from_bytes(seed, "little"), rounds=8)',
        _secrets("streams_are_those_of_chacha20"),
    ),
    "two owners agree on 32 bits": Mutation(
        "return HKDF(SHA256(), 32, salt=None, info=info).derive(secret)",
        "return HKDF(SHA256(), 4, salt=None, info=info).derive(secret) * 8",
        _secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of a mask of two owners]"
        ),
    ),
    "two owners have the same masks in all joint fits": Mutation(
        "*both, self.joint.digest.encode()])",
        "*both])",
        _secrets("seeds_of_two_owners_are_known_to_them_alone"),
    ),
    "names of tasks are short": Mutation(
        'return f"skdpgen-{uuid4().hex}"',
        'return f"skdpgen-{4 * uuid4().hex[:8]}"',
        _secrets("each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are[name of a task]"),
    ),
}

COMPOSITION = {
    "of persons the least number of rows is said": Mutation(
        "max_rows=None if None in max_rows else max(max_rows),",
        "max_rows=None if None in max_rows else min(max_rows),",
        _composition("persons_of_different_numbers_of_rows[max_rows0]"),
    ),
    "of persons the first number of rows is said": Mutation(
        "max_rows=None if None in max_rows else max(max_rows),",
        "max_rows=max_rows[0],",
        _composition("persons_of_different_numbers_of_rows[max_rows0]"),
    ),
    "one seed among several fits is not said": Mutation(
        "reproducible=any(certificate.reproducible for certificate in certificates),",
        "reproducible=all(certificate.reproducible for certificate in certificates),",
        _composition("each_member_of_a_composition[Gaussian-seeded]"),
    ),
    "several seeds are not said to be different": Mutation(
        "if sum(certificate.reproducible for certificate in certificates) > 1:",
        "if sum(certificate.reproducible for certificate in certificates) > 2:",
        _composition("each_member_of_a_composition[seeded-responses]"),
    ),
    "any number of records is that of all fits": Mutation(
        "n_records=n_records.pop() if len(n_records) == 1 else None,",
        "n_records=certificates[0].n_records,",
        _composition("numbers_of_records_are_said_where_all_are_the_same[n_records1-None]"),
    ),
    "δ of several fits is the least": Mutation(
        "delta=max(certificate.delta for certificate in certificates),",
        "delta=min(certificate.delta for certificate in certificates),",
        _composition("each_member_of_a_composition[Gaussian-Laplace]"),
    ),
    "accountants are mixed": Mutation(
        'for name in ("relation", "accountant"):',
        'for name in ("relation",):',
        _composition("unlike_terms_are_refused_in_any_order[option1]"),
    ),
    "relations are mixed": Mutation(
        'for name in ("relation", "accountant"):',
        'for name in ("accountant",):',
        _composition("unlike_terms_are_refused_in_any_order[option0]"),
    ),
    "assumptions are those of the first fit": Mutation(
        "assumptions = dict.fromkeys(a for c in certificates for a in c.assumptions)",
        "assumptions = dict.fromkeys(certificates[0].assumptions)",
        _composition("each_member_of_a_composition[Gaussian-shared]"),
    ),
    "engines of several fits are not said": Mutation(
        "engine=join_names(c.engine for c in certificates if c.engine is not None) or None,",
        "engine=None,",
        _composition("whose_engines_held_rows_is_said"),
    ),
    "names of estimators add up": Mutation(
        'for text in texts for name in text.split(" and ")',
        "for text in texts for name in [text]",
        _composition("compositions_are_composed_as_their_parts_are[Gaussian-seeded-responses]"),
    ),
    "ρ of pure releases is half of what it is": Mutation(
        "mu = gaussian_mu([event]) if epsilon is None else epsilon\n",
        "mu = gaussian_mu([event]) if epsilon is None else epsilon / math.sqrt(2)\n",
        _composition("readings_of_a_composition_in_closed_form[Gaussian-Laplace]"),
    ),
    "ρ counts releases that are repeated once": Mutation(
        "total += count * mu**2 / 2",
        "total += mu**2 / 2",
        _composition("readings_of_a_composition_in_closed_form[Laplace-responses]"),
    ),
    "ρ of what is not known is left out": Mutation(
        "        if mu is None:\n            return None\n        total +=",
        "        if mu is None:\n            continue\n        total +=",
        _composition("readings_of_a_composition_in_closed_form[Gaussian-sampled]"),
    ),
    "pure releases are priced once": Mutation(
        "self._pure_epsilon += times * count * pure",
        "self._pure_epsilon = max(self._pure_epsilon, times * count * pure)",
        _composition("costs_of_a_composition_in_closed_form[Laplace-responses-1e-05]"),
    ),
    "maps without signs hide those with signs": Mutation(
        "is_signed = any((groups < 0).any() for groups in self.maps)",
        "is_signed = all((groups < 0).any() for groups in self.maps)",
        _three_way("sensitivity[signs first]"),
    ),
}

READING = {
    "texts that are numbers stay texts": Mutation(
        "    if not math.isnan(number):\n        return number\n",
        "",
        _cells("one_cell_changes_nothing_for_other_records[age-chunks of 7]"),
    ),
    "texts that are booleans stay texts": Mutation(
        'if stripped.lower() in ("true", "false"):',
        'if stripped in ("true", "false"):',
        _cells("one_cell_changes_nothing_for_other_records[flag-chunks of 7]"),
    ),
    "texts that are dates stay texts": Mutation(
        "return text if date is None else date",
        "return text",
        _cells("one_cell_changes_nothing_for_other_records[day-chunks of 7]"),
    ),
    "dates keep their time zones": Mutation(
        "return date.astimezone(datetime.timezone.utc)",
        "return date",
        _cells("forms_of_one_value_are_one"),
    ),
    "zeros in front of a day are lost": Mutation(
        "style.read_date(str(int(value)).zfill(width))",
        "style.read_date(str(int(value)))",
        _cells("dates_that_readers_take_for_numbers_are_the_same_days"),
    ),
    "texts that stand for missing cells are categories": Mutation(
        "of_texts |= dict.fromkeys(texts & missing)",
        "pass",
        _cells("one_cell_changes_nothing_for_other_records[number-chunks of 7]"),
    ),
    "categories that look missing are": Mutation(
        "MISSING.difference(self.levels[j])",
        "MISSING",
        _cells("categories_may_look_missing"),
    ),
    "identifiers in rows are read as they look": Mutation(
        "    if is_stated:\n        return None\n",
        "    if is_stated or type(kind).__name__ == 'Identifier':\n        return None\n",
        _chunks("a_cell_of_an_identifier_chooses_no_rows_of_others"),
    ),
    "rows are held where the next ones are written": Mutation(
        "            if n_held < size:\n",
        "            if False:\n",
        _chunks("a_source_may_write_each_chunk_where_the_last_one_was"),
    ),
    "the words of a system error are told": Mutation(
        "os.strerror(error.errno)",
        "error.strerror",
        _chunks("errors_of_a_function_of_chunks_are_withheld[patient-called]"),
    ),
    "chunks of a function are taken to be read alike": Mutation(
        "has_reader_dtypes=isinstance(X, TableChunks) and not X.states_dtypes",
        "has_reader_dtypes=False",
        _chunks("the_certificate_assumes_what_cannot_be_seen_of_a_function"),
    ),
    "short floats are read as long ones": Mutation(
        "n_bits = np.finfo(type(number)).nmant + 1",
        "n_bits = 53",
        _persons("floats_that_may_be_rounded_are_nobodys"),
    ),
    "levels are found by their text alone": Mutation(
        "return named.get(_find_key(cell, levels), -1)",
        "return -1",
        _cells("levels_are_found_by_value"),
    ),
    "categories that are alike are let pass": Mutation(
        "    if alike is not None:\n        raise ValueError(",
        "    if False:\n        raise ValueError(",
        _cells("categories_that_readers_may_confuse_are_refused_for_nothing"),
    ),
    "dtypes of the first chunk are public": Mutation(
        "if isinstance(X, TableChunks) and not X.states_dtypes:",
        "if False:",
        _cells("first_chunks_say_names_only"),
    ),
    "texts of objects are codes": Mutation(
        "return is_string_dtype(dtype) and isinstance(dtype, ExtensionDtype)",
        "return is_string_dtype(dtype)",
        _cells("one_cell_changes_nothing_for_other_records[code-mixed]"),
    ),
    "texts that a container states are numbers": Mutation(
        "    if is_stated:\n        return None\n",
        "",
        _cells("texts_that_a_container_states_stay_codes"),
    ),
    "rows that were not chosen count later": Mutation(
        "taken = (places >= 0) & (n_before < left[places])",
        "taken = n_before < left[places]",
        _chunks("later_readings_count_no_more_of_anybody"),
    ),
    "rows of persons with few rows are not counted": Mutation(
        "        chosen[chosen] = _take(self._left, codes[chosen])\n",
        "",
        _chunks("later_readings_count_no_more_of_anybody"),
    ),
    "rows are counted anew in each block": Mutation(
        "    np.subtract.at(left, places[taken], 1)\n",
        "",
        _chunks("later_readings_count_no_more_of_anybody"),
    ),
    "other persons in a later reading are not told": Mutation(
        "others = self._n_persons_read - {self.n_units}",
        "others = set()",
        _chunks("other_persons_in_a_later_reading_are_told_by_their_number"),
    ),
    "numbers and their texts are two persons": Mutation(
        "if whole := _WHOLE.fullmatch(text):",
        "if whole := None:",
        _engines("numbers_and_texts_that_read_alike_are_one_person"),
    ),
    "True and 1 are two persons": Mutation(
        "return str(int(name))\n    if isinstance(name, float | np.floating)",
        "return str(name)\n    if isinstance(name, float | np.floating)",
        _persons("forms_of_one_identifier_are_one_person"),
    ),
    "dates of NumPy are persons of other names": Mutation(
        'pd.Series(different) if different.dtype.kind == "M" else different',
        "different",
        _persons("forms_of_one_identifier_are_one_person"),
    ),
    "floats that were rounded are persons": Mutation(
        "    if not _is_exact(number):\n        return None\n",
        "",
        _chunks("what_is_no_identifier_concerns_its_row_alone"),
    ),
    "the order of an index is not looked at": Mutation(
        "    if apart is not None and not len(apart):",
        "    if False:",
        _chunks("persons_in_another_order_of_the_index_are_refused"),
    ),
    "errors of a function of chunks are quoted": Mutation(
        "                kind = type(error).__name__",
        "                kind = str(error)",
        _chunks("errors_of_a_function_of_chunks_are_withheld"),
    ),
    "nanoseconds narrow the years of other dates": Mutation(
        '    cells = cells.str.replace(r"(\\.\\d{6})\\d+(?=$|Z|[+-])", r"\\1", regex=True)\n',
        "",
        "tests/formats/test_texts.py::test_a_date_is_read_on_its_own",
    ),
    "whole numbers of a chunk of whole numbers are exact": Mutation(
        'values = _parse_numbers(cells.where(present), style).astype("float64")',
        "values = _parse_numbers(cells.where(present), style)",
        "tests/formats/test_texts.py::test_a_number_is_read_as_it_is_alone",
    ),
    "a dtype that a cell has made is refused": Mutation(
        "is_chosen = not are_stated and",
        "is_chosen = are_stated and",
        "tests/formats/test_table_encoder.py::test_texts_in_place_of_values_are_refused_where_the_source_states_them",
    ),
    "infinity has no decimals": Mutation(
        "is_known = np.isfinite(numbers)",
        "is_known = ~np.isnan(numbers)",
        "tests/formats/test_decimals.py::test_what_is_no_finite_number_has_no_decimals[inf]",
    ),
    "negative identifiers are those of others": Mutation(
        'return f"-{whole[2]}" if whole[1] == "-" and whole[2] != "0" else whole[2]',
        "return whole[2]",
        _persons("forms_of_one_identifier_are_one_person"),
    ),
    "dates are rounded to the nearest second": Mutation(
        'return np.datetime64(value, "us").astype("M8[s]")',
        'return (np.datetime64(value, "us") + np.timedelta64(500_000, "us")).astype("M8[s]")',
        "tests/formats/test_cells.py::test_a_cell_is_read_alike_beside_any_other",
    ),
    "files of a table have columns of other types": Mutation(
        "if not read_schema(other).equals(schema):",
        "if read_schema(other).names != schema.names:",
        "tests/privacy/test_files.py::"
        "test_files_of_one_table_have_the_same_columns_of_the_same_types",
    ),
}

PERSONS = {
    "a person moves sums as a record does": Mutation(
        "return max_rows * max(",
        "return max(",
        _persons("a_person_moves_sums_by_no_more_than_is_claimed[sum-zero_out-4]"),
    ),
    "replacing a person is thought to be replacing rows": Mutation(
        'max_rows * max(sensitivity(relation), sensitivity("zero_out"))',
        "max_rows * sensitivity(relation)",
        _persons("a_person_moves_sums_by_no_more_than_is_claimed[always one-replace_one-4]"),
    ),
    "rows of a person are bounded within chunks": Mutation(
        "            codes.append(self._find_codes(",
        "            self._numbered = {}\n            codes.append(self._find_codes(",
        _persons("chunks_of_identifiers_are_the_same_as_all_of_them"),
    ),
    "rows of a person are bounded in the first block": Mutation(
        "None if self._null is None else self._null[start:stop]",
        "None if self._null is None else self._null[: len(X)]",
        _persons("rows_are_bounded_over_all_blocks_and_chunks[None]"),
    ),
    "rows of nobody count": Mutation(
        "of_names = np.full(len(names) + 1, -1)",
        "of_names = np.zeros(len(names) + 1, dtype=np.int64)",
        _persons("so_many_rows_of_each_count_and_none_that_is_nobodys"),
    ),
    "rows that do not count are not left out": Mutation(
        "self._null = left_out if self._null is None else self._null | left_out",
        "self._null = self._null",
        _persons("a_person_moves_sums_by_no_more_than_is_claimed[class counts-zero_out-1]"),
    ),
    "of all persons the same rows count": Mutation(
        "_as_hashes(map(partial(_hash, self._key), names, written))",
        "_as_hashes(len(row) for row in written)",
        _persons("each_row_is_as_likely_to_count"),
    ),
    "of equal rows of a person all count or none": Mutation(
        '"hash"]).cumcount()',
        '"hash"]).cumcount() * 0',
        _persons("equal_rows_are_as_likely_to_count_as_others"),
    ),
    "which rows count follows from their order": Mutation(
        "written = _write_rows(X[here], None if y is None else y[here])",
        "written = [b'%d' % i for i in range(len(here))]",
        _persons("which_rows_count_follows_from_the_rows_of_that_person_alone"),
    ),
    "rows are chosen by a public key": Mutation(
        "key=noise.key() if has_persons else None",
        "key=bytes(32)",
        _persons("each_fit_chooses_with_a_key_of_its_own"),
    ),
    "the threshold is that of one row": Mutation(
        "threshold = most + 1 + ",
        "threshold = 2 + ",
        _persons("what_a_person_alone_holds_passes_as_rarely_as_stated[6-columns0-zero_out]"),
    ),
    "a person holds one category of a column": Mutation(
        "event.delta / (most * len(self.columns))",
        "event.delta / len(self.columns)",
        _persons("what_a_person_alone_holds_passes_as_rarely_as_stated[6-columns1-zero_out]"),
    ),
    "the grid is that of the number of rows": Mutation(
        "self.n_units, self.n_records = n_persons, n_persons * self.max_rows",
        "self.n_units, self.n_records = n_persons, self._n_rows",
        _persons("what_is_public_follows_from_persons_alone"),
    ),
    "progress tells the number of rows": Mutation(
        "is_told = self.max_rows is None",
        "is_told = True",
        _persons("progress_does_not_tell_how_many_rows_there_are[5000]"),
    ),
    "sizes follow from the number of rows": Mutation(
        "n_rows if persons is None else persons.n_persons",
        "n_rows",
        _of_persons("all_that_is_seen_follows_from_persons_alone[declared-1]"),
    ),
    "the number of rows is told without noise": Mutation(
        "noisy = self.release(RowCountMechanism()).value.item()",
        "noisy = self._source.count_rows()",
        _persons("the_number_of_rows_is_noised_and_kept_within_what_is_possible"),
    ),
    "a sum of any release takes persons": Mutation(
        "self.plan.max_rows is not None and not mechanism.is_sum",
        "self.plan.max_rows is None and not mechanism",
        _persons("what_is_no_sum_is_refused_before_a_row_is_read"),
    ),
    "sampled releases take persons": Mutation(
        "if not release.is_sum:",
        "if release is None:",
        _of_persons("what_is_no_sum_over_all_rows_is_refused_before_anything_is_read"),
    ),
    "a certificate for persons speaks of records": Mutation(
        "describe_unit(self.relation, self.max_rows, self.n_records)",
        "describe_unit(self.relation, None, self.n_records)",
        _of_persons("the_certificate_is_for_persons"),
    ),
    "of one row too many the first count": Mutation(
        "self._is_large = sizes > max_rows",
        "self._is_large = sizes > max_rows + 1",
        _persons("no_row_counts_because_it_comes_first[1]"),
    ),
    "rows are told from each other by 16 bits": Mutation(
        "hashed = blake2b(key=key, digest_size=8)",
        "hashed = blake2b(key=key, digest_size=2)",
        _persons("unlike_rows_have_unlike_hashes"),
    ),
    "who comes later is the first person": Mutation(
        "            others.add(name)\n            return -1",
        "            others.add(name)\n            return 0",
        _persons("persons_who_come_later_are_nobody"),
    ),
}

AUDITS = {
    "cotangents are random anew, whoever is in the seat": Mutation(
        "generator = torch.Generator().manual_seed(seed)\n    with torch.enable_grad()",
        "generator = None\n    with torch.enable_grad()",
        "tests/adaptation/test_audits.py::test_what_adapters_release_is_consistent[rows]",
    ),
    "audits take noise for less than it is": Mutation(
        "stats.chi2.ppf(alpha, len(values) - 1)",
        "stats.chi2.isf(alpha, len(values) - 1)",
        _audit_statistics("bounds_hold_as_often_as_they_say[0.1]"),
    ),
    "audits test at one lag as at two": Mutation(
        "np.where(2 * lags == self._n, 2.0, 1.0)",
        "np.where(2 * lags == self._n, 1.0, 1.0)",
        _audit_statistics("lags[2]"),
    ),
    "an audit lets nobody else take the seat": Mutation(
        "taken[rows] = taken[rows] if position is None else position",
        "taken[rows] = taken[rows]",
        _audit("what_is_sound_is_shown_to_cost_nearly_what_is_claimed[second moments, replaced]"),
    ),
    "an audit sees no noise that is shared": Mutation(
        "if len(shared):",
        "if len(shared) and False:",
        _audit("noise_that_is_not_what_it_is_taken_to_be[_shuffle-numbers share their noise-inf]"),
    ),
    "an audit sees no numbers without noise": Mutation(
        "self.faults += _find_bare(runs, absent)",
        "_find_bare(runs, absent)",
        _audit(
            "noise_that_is_not_what_it_is_taken_to_be"
            "[_leave_out-numbers are released without noise-0]"
        ),
    ),
    "more than is claimed is consistent": Mutation(
        "        if self.bound > self.claim:\n            reasons",
        "        if self.bound > 2 * self.claim:\n            reasons",
        _audit("noise_of_half_the_variance[tables]"),
    ),
    "made records are at the edge": Mutation(
        "sizes = _INSIDE * generator",
        "sizes = 1.0 * generator",
        _audit("records_that_are_not_clipped[auto]"),
    ),
    "inferred bounds cover whoever may take the seat": Mutation(
        'np.isin(np.arange(len(data["X"])), seat.candidates)',
        "None",
        _audit("records_that_are_not_clipped[auto, few records]"),
    ),
    "an audit runs on one neighbour": Mutation(
        "cycle(zip(sources, runs, strict=True))",
        "cycle([(sources[0], runs[0])])",
        _audit("noise_that_depends_on_presence[slice sketch-0.5-present]"),
    ),
    "an audit of samples looks at the noise of one neighbour": Mutation(
        "for turn in cycle((0, 1)):",
        "for turn in cycle((0,)):",
        _audit("noise_that_depends_on_presence[gradients-0.5-present]"),
    ),
    "an audit knows no thresholds": Mutation(
        "self.threshold[1] > self.threshold[0]",
        "self.threshold[1] > 1",
        _audit("a_threshold_of_0[None]"),
    ),
    "an audit does not count who joins": Mutation(
        "self.rate[1] > self.rate[0]",
        "self.rate[1] > 1",
        _audit("records_that_join_too_often"),
    ),
    "an audited person has as many rows as count": Mutation(
        "n_more = 2 * max_rows",
        "n_more = max_rows - 1",
        _audit("rows_of_a_person_of_which_all_count"),
    ),
    "an audit reads given rows without a word": Mutation(
        "    if is_given:\n        warnings.warn(",
        "    if False:\n        warnings.warn(",
        "tests/privacy/test_audit_reports.py::"
        "test_made_records_are_read_without_a_warning_and_given_ones_with_one",
    ),
    "a convicted synthesis has no exit code": Mutation(
        "return _CONVICTED if found.verdict",
        "return 0 if found.verdict",
        "tests/cli/test_audits.py::test_a_conviction",
    ),
    "guesses of one fit are wrong one by one": Mutation(
        "right += v / (n_guesses - v) * (least - wrong)",
        "right += n_guesses / (n_guesses - v) * (least - wrong)",
        _refuting("one_guess_of_randomised_response[0.5]"),
    ),
    "stakes are added up": Mutation(
        "logsumexp(gains) - math.log(len(_STAKES)) >=",
        "logsumexp(gains) >=",
        _refuting("fits_are_refuted_as_often_as_said"),
    ),
    "a guess is right no oftener than wrong": Mutation(
        "most = (1 + curve.advantage) / 2",
        "most = (1 + curve.advantage / 2) / 2",
        _refuting("many_fits_come_near_the_truth[1]"),
    ),
    "guesses are of the least clear": Mutation(
        "order = np.argsort(scores)\n    out",
        "order = np.argsort(np.abs(scores))\n    out",
        _fit_audit("a_guess_is_of_the_clearest"),
    ),
    "a given person takes the seat with one row": Mutation(
        "rows = np.flatnonzero(np.asarray(persons) == np.asarray(persons)[-1])",
        "pass",
        "tests/privacy/test_audit_reports.py::test_a_person_of_given_rows_takes_the_seat_with_all_of_them",
    ),
    "two ways to refute are each as sure as both": Mutation(
        "alpha = (1 - confidence) / 2",
        "alpha = 1 - confidence",
        _fit_audit("two_ways_to_refute_share_what_may_be_wrong"),
    ),
    "of pure releases the largest counts": Mutation(
        "pure += found.bound",
        "pure = max(pure, found.bound)",
        "tests/privacy/test_audit_reports.py::"
        "test_pure_releases_cost_together_what_they_cost_alone",
    ),
}

# What whatever is asked for would show.
FUZZ = {
    "errors keep the variables of their frames": Mutation(
        "traceback.clear_frames(error.__traceback__)",
        "pass",
        _fuzz("fits"),
    ),
    "frames of the caller are cleared, too": Mutation(
        "while error is not None and error is not handled:",
        "while error is not None:",
        "tests/test_edges.py::test_frames_outside_are_left",
    ),
    "the global generator is seeded": Mutation(
        "return torch.Generator().manual_seed(self.seed())",
        "return torch.manual_seed(self.seed())",
        _fuzz("fits"),
    ),
    "arrays are compared with choices": Mutation(
        "return isinstance(value, str | int | None) and value in choices",
        "return value in choices",
        "tests/formats/test_schema.py::test_what_is_of_another_type_is_named[bad4]",
    ),
    "a run that has failed states its own price": Mutation(
        "raise SpentError(str(error) + price * (not is_part())) from error",
        "raise SpentError(str(error) + price) from error",
        _search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "a refusal in a run states the price of the run": Mutation(
        "return _restate(error, str(error) + price * (not is_part()))",
        "return _restate(error, str(error) + price)",
        _search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "a search that has failed does not say what is charged": Mutation(
        "if released and isinstance(error, Exception):",
        "if False:",
        _search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "a refusal does not say what is charged": Mutation(
        "with naming_what_is_charged(plan):",
        "with contextlib.nullcontext():",
        "tests/test_edges.py::test_rows_that_are_refused_say_what_is_charged[False]",
    ),
    "samples of chunks are planned": Mutation(
        "            if callable(X):\n                self._refuse_samples(",
        "            if False:\n                self._refuse_samples(",
        "tests/test_edges.py::test_samples_of_chunks_are_refused_before_anything_is_read",
    ),
    "all that has a hash is an identifier": Mutation(
        "or name is pd.NaT or not _is_identifier(name)",
        "or name is pd.NaT",
        _persons("what_equals_no_copy_of_itself_is_no_identifier[objects]"),
    ),
    "errors keep the frames of those that they followed": Mutation(
        "clear_frames(error.__traceback__)\n        error = error.__cause__ or error.__context__",
        "clear_frames(error.__traceback__)\n        error = error.__cause__",
        "tests/privacy/test_record_functions.py::test_errors_keep_nothing_of_the_frames_that_they_came_through[False]",
    ),
}


def _report(test):
    return f"tests/evaluation/test_report.py::test_{test}"


# What is said of fits and of synthetic rows.
WORDS = {
    "a certificate tells a seed": Mutation(
        'UNSAID = ("random_state", "device", "verbose")',
        'UNSAID = ("device", "verbose")',
        "tests/accounting/test_certificate.py::test_the_origin_says_who_made_it_when_and_with_what",
    ),
    "a seed is not warned of": Mutation(
        "    if noise.reproducible:\n        warn_of_seed()",
        "    if False:\n        warn_of_seed()",
        "tests/test_base.py::test_a_seed_is_warned_of_where_fit_is_called",
    ),
    "private rows are reported on unasked": Mutation(
        "        if not reads_private_rows:\n            raise ValueError(",
        "        if False:\n            raise ValueError(",
        _report("private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top"),
    ),
    "a report on private rows does not say so": Mutation(
        'if results["reads_private_rows"]:\n        alarms.append(',
        "if False:\n        alarms.append(",
        _report("private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top"),
    ),
    "a page does not escape levels": Mutation(
        ">{escape(text)}</text>",
        ">{text}</text>",
        _report("the_page_stands_by_itself_and_escapes_what_is_in_it"),
    ),
    "classifiers are trained on the reference": Mutation(
        'zip(("synthetic", "reference"), rows, labels, strict=False)',
        'zip(("synthetic", "reference"), rows[1:], labels[1:], strict=False)',
        _report("classifiers_learn_from_the_one_table_and_are_tested_on_the_other"),
    ),
    "the total variation is twice as large": Mutation(
        "np.abs(shares[0] - shares[1]).sum() / 2",
        "np.abs(shares[0] - shares[1]).sum()",
        _report("total_variation_in_closed_form"),
    ),
    "ε in words is that of a smaller one": Mutation(
        "right = 1 / (1 + math.exp(-epsilon)) + ",
        "right = 1 / (1 + math.exp(-epsilon / 2)) + ",
        _report("the_certificate_is_on_the_page"),
    ),
    "an audit of other noise is taken for one of the certificate": Mutation(
        "audited.get(name) == certificate.get(name) for name in said",
        "name in audited for name in said",
        _report("an_audit_of_the_same_releases_is_no_alarm"),
    ),
    "values without a bar are left out of a report": Mutation(
        "{_list_other_levels(column)}</figure>",
        "</figure>",
        _report("long_lists_are_folded"),
    ),
    "what was found is no schema": Mutation(
        'if is_found and isinstance(written["report"], list):',
        "if False:",
        "tests/cli/test_reports.py::test_what_was_found_is_a_schema_for_what_comes_after",
    ),
}

KINDS = {
    "privacy": PRIVACY
    | ROUNDING
    | SECRETS
    | COMPOSITION
    | READING
    | PERSONS
    | ENGINES
    | OWNERS
    | AUDITS
    | FUZZ,
    "function": FUNCTION | RULES | WORDS,
}
MUTATIONS = KINDS["privacy"] | KINDS["function"]


def _copy_library(target):
    """Copy the package, the tests and their settings, and return the copy of the package."""
    package = Path(skdpgen.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__", "mutations")
    shutil.copytree(package, target / "skdpgen", ignore=ignore)
    shutil.copytree(Path(__file__).parents[1], target / "tests", ignore=ignore)
    settings = package.parent / "pyproject.toml"
    if settings.exists():
        shutil.copy(settings, target)
    return target / "skdpgen"


def _run(folder, *tests):
    """Run tests in a copy, and return the exit status and the output."""
    process = _SERVER.Process(target=exec, args=(_RUN, {"folder": str(folder), "tests": tests}))
    process.start()
    process.join(timeout=600)
    process.kill()
    imported, _, output = (folder / "output.txt").read_text().partition("\n")
    assert imported == str(folder / "skdpgen" / "__init__.py"), f"Tested {imported}.\n{output}"
    return process.exitcode, output


def test_no_mutation_hides_another():
    groups = [PRIVACY, FUNCTION, RULES, PERSONS, ENGINES, OWNERS, AUDITS, FUZZ, WORDS]
    groups += [ROUNDING, SECRETS, COMPOSITION, READING]
    assert len(MUTATIONS) == sum(map(len, groups))


def test_what_is_replaced_is_there():
    texts = _read_all(Path(skdpgen.__file__).parent)
    for mutation in MUTATIONS.values():
        mutation.find(texts)


def test_the_tests_that_are_to_fail_are_there():
    tests = dict.fromkeys(mutation.test for mutation in MUTATIONS.values())
    collect = ["-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [sys.executable, *collect, *tests],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == pytest.ExitCode.OK, found.stderr


@pytest.mark.slow
def test_the_tests_pass_without_a_mutation(tmp_path):
    _copy_library(tmp_path)
    status, output = _run(tmp_path, *dict.fromkeys(m.test for m in MUTATIONS.values()))
    assert status == pytest.ExitCode.OK, output


# What breaks all methods at once is tried in each run; the rest, with ``-m slow``.
QUICK = [
    "no noise",
    "an event is missing from the certificate",
    "a row is kept",
    "the shape follows the size of a Poisson sample",
]


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(
            mutation, id=f"{kind}: {name}", marks=() if name in QUICK else pytest.mark.slow
        )
        for kind, mutations in KINDS.items()
        for name, mutation in mutations.items()
    ],
)
def test_mutation_is_caught(mutation, tmp_path):
    mutation.apply(_copy_library(tmp_path))
    status, output = _run(tmp_path, mutation.test)
    assert status == pytest.ExitCode.TESTS_FAILED, output
    # A mutant that merely crashes would prove nothing.
    said = ("AssertionError", "oracle.Fault: ", "DID NOT RAISE", "DID NOT WARN")
    assert any(what in output for what in said), output


@pytest.mark.parametrize(
    ("old", "where"),
    [("no such text", "is in no file"), ("import", r"is in {.*'curator/curator\.py': \d+, .*}")],
)
def test_a_text_that_is_not_there_once_fails_loudly(old, where):
    texts = _read_all(Path(skdpgen.__file__).parent)
    with pytest.raises(AssertionError, match=f"{where}, not once"):
        Mutation(old, "", "").find(texts)
