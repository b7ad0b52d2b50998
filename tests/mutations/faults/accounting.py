"""Faults in accounting."""

from ..fault import Fault
from ..ids import (
    accounting,
    audit,
    budget,
    budget_files,
    budget_processes,
    calibration,
    certificate,
    certificate_edits,
    command_line,
    compatibility,
    composition,
    counts,
    curator,
    dp_accounting,
    of_persons,
    persons,
    release_rounding,
    sampled,
    saving,
    search,
    selection,
    shuffling,
    signatures,
    sliced_products,
    spending,
    streams,
    strict_json,
)

PRIVACY = {
    "a stated multiplier is priced as one over the sensitivity": Fault(
        "accounting.accountants:_Ledger.__init__",
        "over_sensitivity(leaf, relation)",
        "leaf",
        dp_accounting("dp_accounting_recomputes_the_certificate_of[aggregates-replace_one-None]"),
    ),
    "noise is drawn as if multipliers were over the sensitivity": Fault(
        "accounting.events:step_std",
        "over_sensitivity(event, relation)",
        "event",
        dp_accounting("events_have_the_noise_over_the_norm_of_one_record[replace_one]"),
    ),
    "μ is that of multipliers over the sensitivity": Fault(
        "accounting.certificate:Certificate._over_sensitivity",
        "over_sensitivity(event, self.relation)",
        "event",
        dp_accounting("events_have_the_noise_over_the_norm_of_one_record[replace_one]"),
    ),
    "a diameter is taken for the norm of one record": Fault(
        "accounting.events:noise_unit",
        'relation == "zero_out" or isinstance(base, DiameterGaussianDpEvent)',
        'relation == "zero_out"',
        dp_accounting("dp_accounting_recomputes_the_certificate_of[gradients-replace_one-None]"),
    ),
    "a planned multiplier is one over the sensitivity": Fault(
        "accounting.plan:Plan.multiplier",
        "over_sensitivity(dict(self.releases)[name], self.relation)",
        "dict(self.releases)[name]",
        dp_accounting("events_have_the_noise_over_the_norm_of_one_record[replace_one]"),
    ),
    "an audit claims what multipliers over the sensitivity would": Fault(
        "auditing.mechanism_audit:MechanismAudit._report",
        "over_sensitivity(self._base, self._relation)",
        "self._base",
        audit("persons[slice sketch-replace_one]"),
    ),
    "verify passes what no fit makes": Fault(
        "accounting.certificate:Certificate.__post_init__",
        "find_conflict(self.events, *terms)",
        "None",
        compatibility("verify_passes_what_a_fit_can_make[steps-replace_one-False-None-5]"),
    ),
    "plans go with anything": Fault(
        "accounting.plan:Plan.check_place",
        "find_conflict(self.events, *terms)",
        "None",
        compatibility("verify_passes_what_a_fit_can_make[threshold-replace_one-True-None-None]"),
    ),
    "a curator takes anything from an engine": Fault(
        "curator.curator:Curator.__init__",
        "plan.check_place(self._engine)",
        "plan.check_place(None)",
        compatibility("verify_passes_what_a_fit_can_make[rows-zero_out-False-dask-None]"),
    ),
    "samples are for persons": Fault(
        "accounting.event_types",
        '_SAMPLE = EventType("a release of samples or of single rows")',
        '_SAMPLE = EventType("a release of samples or of single rows", for_persons=True)',
        compatibility("verify_passes_what_a_fit_can_make[sampled gradient-zero_out-False-None-5]"),
    ),
    "compositions hide what they compose": Fault(
        "accounting.event_types:find_conflict",
        "flatten(events)",
        "events",
        compatibility("verify_passes_what_a_fit_can_make[steps-replace_one-False-None-5]"),
    ),
    "shuffling counts the larger of two randomisers": Fault(
        "accounting.certificate:Certificate.shuffled",
        "sum(count * losses[leaf] for leaf, count in leaves.items())",
        "max(count * losses[leaf] for leaf, count in leaves.items())",
        shuffling("all_releases_of_a_record_are_one_randomiser[Laplace-responses]"),
    ),
    "shuffling counts a randomiser once": Fault(
        "accounting.certificate:Certificate.shuffled",
        "count * losses[leaf]",
        "losses[leaf]",
        shuffling("all_releases_of_a_record_are_one_randomiser[twice-Laplace]"),
    ),
    "a threshold costs nothing": Fault(
        "accounting.accountants:_Ledger.__init__",
        "count * leaf.delta",
        "0.0",
        counts("price_is_that_of_the_gaussian_at_a_smaller_delta"),
    ),
    "pure releases are priced once": Fault(
        "accounting.accountants:_Ledger.__init__",
        "self.pure_epsilon += count * pure",
        "self.pure_epsilon = max(self.pure_epsilon, count * pure)",
        composition("costs_of_a_composition_in_closed_form[Laplace-responses-1e-05]"),
    ),
    "pure releases cost nothing beside others": Fault(
        "accounting.accountants:_Ledger._find_least",
        "{**self.leaves, **self._pure}",
        "{**self.leaves}",
        composition("costs_of_a_composition_in_closed_form[Gaussian-Laplace-1e-05]"),
    ),
    "Laplace noise hides twice as much beside others": Fault(
        "accounting.loss_distributions:_pure_profile",
        "1 / event.noise_multiplier",
        "0.5 / event.noise_multiplier",
        composition("costs_of_a_composition_in_closed_form[Gaussian-Laplace-1e-05]"),
    ),
    "sampling hides large losses": Fault(
        "accounting.loss_distributions:_amplified",
        "epsilon - math.log(rate)",
        "epsilon - 10 * math.log(rate)",
        accounting("steps_of_large_losses_are_tight[1-0.01-0.02]"),
    ),
    "children copy a lock that is held": Fault(
        "accounting.budget",
        """
        os.register_at_fork(
            before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
        )
        """,
        "os.register_at_fork(before=lambda: None)",
        budget_processes("a_fork_while_another_thread_reserves"),
    ),
    "a plan takes less for thresholds than a budget sets aside": Fault(
        "accounting.plan:_gaussian_releases",
        "math.log1p(-slack)",
        "sum(math.log1p(-one) for one in thresholds.values())",
        budget("an_exact_fit_with_several_thresholds_is_allowed[2.0-0.001]"),
    ),
    "a budget prices all fits under zero_out": Fault(
        "accounting.budget:PrivacyBudget._cost",
        "ledger_epsilon(gaussians, left, relation=self.relation)",
        "ledger_epsilon(gaussians, left)",
        budget("a_fit_costs_as_much_as_on_its_certificate[replace_one]"),
    ),
    "a budget prices searches under zero_out": Fault(
        "accounting.budget:PrivacyBudget._cost",
        'ledger_epsilon(searches, delta, accountant="rdp", relation=self.relation)',
        'ledger_epsilon(searches, delta, accountant="rdp")',
        selection("a_budget_prices_a_search_under_its_relation"),
    ),
    "a budget adds nothing for thresholds": Fault(
        "accounting.budget:PrivacyBudget._cost",
        "cost - math.log1p(-self.threshold_delta)",
        "cost",
        budget("thresholds_cost_as_much_as_on_a_certificate[0.5]"),
    ),
    "thresholds may take a little more than is set aside": Fault(
        "accounting.budget:PrivacyBudget._check_thresholds",
        "1 + 1e-9",
        "1 + 1e-2",
        budget("a_threshold_that_overruns_by_a_millionth_is_refused"),
    ),
    "fits may cost more than their budget": Fault(
        "accounting.budget:PrivacyBudget._check",
        "1 + 1e-9",
        "1 + 1e-2",
        budget("a_fit_that_overruns_by_a_millionth_is_refused"),
    ),
    "a budget that is closed takes the configuration of another one": Fault(
        "accounting.budget:_ThreadingConfig.close",
        """
        while _configs.entered and _configs.entered[-1]._is_closed:
            _configs.entered.pop()._config.unregister()
        """,
        """
        if _configs.entered:
            _configs.entered.pop()._config.unregister()
        """,
        budget_processes("interleaved_budgets[nested]"),
    ),
    "processes are told of the budget that was opened first": Fault(
        "accounting.budget:_tell_processes",
        "*opened",
        "*opened[:1]",
        budget_processes("interleaved_budgets[crossed]"),
    ),
    "processes are told of what was inherited only while a budget is open": Fault(
        "accounting.budget:_tell_processes",
        "[*_inherited, *opened]",
        "opened",
        budget_processes("inherited_budgets_of_a_process_stay"),
    ),
    "other processes know of no budget": Fault(
        "accounting.budget:find_open_budgets",
        "[PrivacyBudget.from_file(path) for path in _inherited if path not in known]",
        "[PrivacyBudget.from_file(path) for path in ()]",
        budget_files("processes_that_are_started_inside_know_of_it"),
    ),
    "a run of a search releases more than was paid for": Fault(
        "accounting.budget:PaidRun._reserve",
        "not is_covered(plan.events, self._event, self._relation)",
        "False",
        selection("a_run_releases_no_more_than_was_paid_for"),
    ),
    "persons and records share a budget": Fault(
        "accounting.budget:PrivacyBudget._check",
        "any(charge.is_for_persons != other.is_for_persons for other in charges)",
        "charge.is_for_persons and not all(other.is_for_persons for other in charges)",
        budget("records_and_persons_never_share_a_budget[None-3]"),
    ),
    "what a budget paid for may be followed any number of times": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "return ticket, charge, paid",
        "return ticket, paid, paid",
        streams("an_update_that_is_repeated_is_paid_for_each_time_it_is_seen[numbers0]"),
    ),
    "a copy of a budget says nothing": Fault(
        "accounting.budget_stores:FileStore._warn_of_copies",
        "self._inode == _find_inode(self.path)",
        "True",
        budget_files("a_copy_warns"),
    ),
    "a budget that was restored in place says nothing": Fault(
        "accounting.budget_stores:FileStore._warn_of_copies",
        "not _is_restored(database, self.path)",
        "True",
        budget_files("a_restored_file_is_noticed[in place-1]"),
    ),
    "a restored budget is said to be so until it has as many changes": Fault(
        "accounting.budget_stores:_transaction",
        "database.total_changes and not _is_restored(database, path)",
        "database.total_changes",
        budget_files("a_restored_file_is_noticed[in place-1]"),
    ),
    "changes of a budget are counted before they are made": Fault(
        "accounting.budget_stores:_transaction",
        """
        if is_counted:
            database.execute("UPDATE budget SET n_changes = n_changes + 1")
        database.execute("COMMIT")
        """,
        """
        if is_counted:
            database.execute("UPDATE budget SET n_changes = n_changes + 1")
            _write_count(path, _count_changes(database))
        database.execute("COMMIT")
        """,
        budget_files("whatever_got_out_is_charged_wherever_it_is_killed[1]"),
    ),
    "a new budget counts from the start again": Fault(
        "accounting.budget_stores:FileStore._create",
        "_read_count(self.path) + 1",
        "0",
        budget_files("ordinary_use_is_not_called_a_copy"),
    ),
    "another budget takes over a file": Fault(
        "accounting.budget_stores:FileStore.__init__",
        "stored != terms",
        "False",
        budget_files("terms_are_those_of_the_file"),
    ),
    "a closed budget is open": Fault(
        "accounting.budget_stores:FileStore.add",
        "_is_closed(database)",
        "False",
        budget_files("a_closed_budget_takes_nothing"),
    ),
    "a fit that ends takes from those that began later": Fault(
        "accounting.budget_stores:FileStore.settle",
        "_write_charge(database, ticket, charge)",
        "_write_charge(database, max(_read_charges(database)), charge)",
        budget_files("rest_of_one_fit_is_taken_from_no_other"),
    ),
    "a folder is not synced": Fault(
        "accounting.budget_stores:FileStore._create",
        "os.fsync(descriptor)",
        "pass",
        budget_files("written_entries_are_on_the_disk"),
    ),
    "a slower process puts its own budget in place": Fault(
        "accounting.budget_stores:FileStore._create",
        "os.link(draft, self.path)",
        "os.replace(draft, self.path)",
        budget_files("a_file_that_another_process_has_made_meanwhile_stays"),
    ),
    "a budget that is gone is made anew": Fault(
        "accounting.budget_stores:_transaction",
        '"?mode=rw"',
        '"?mode=rwc"',
        budget_files("files_that_are_no_budgets"),
    ),
    "processes read a budget before they lock it": Fault(
        "accounting.budget_stores:_transaction",
        """
        database.execute("BEGIN IMMEDIATE")
        yield database
        """,
        """
        database.execute("BEGIN")
        yield database
        """,
        budget_files("nobody_decides_on_what_another_is_deciding_on"),
    ),
    "charges are not synced": Fault(
        "accounting.budget_stores:_transaction",
        '"PRAGMA synchronous=FULL"',
        '"PRAGMA synchronous=OFF"',
        budget_files("written_entries_are_on_the_disk"),
    ),
    "a budget is rounded to the nearest float": Fault(
        "accounting.calibration:check_epsilon",
        "return at_most(epsilon)",
        "return float(epsilon)",
        "tests/accounting/test_calibration.py::test_budgets_are_never_rounded_up",
    ),
    "δ of a certificate is that of another relation": Fault(
        "accounting.certificate:Certificate.delta_at",
        "ledger_delta(self.events, epsilon, accountant=self.accountant, relation=self.relation)",
        "ledger_delta(self.events, epsilon, accountant=self.accountant)",
        certificate("readings_are_under_the_relation_and_by_the_accountant"),
    ),
    "the last event is not verified": Fault(
        "accounting.certificate:Certificate.from_json",
        "check_unit(certificate.assumptions, max_rows)",
        """
        check_unit(certificate.assumptions, max_rows)
        events = certificate.events[:-1] or certificate.events
        object.__setattr__(certificate, "events", events)
        """,
        certificate("verify_prices_every_event"),
    ),
    "a certificate may state a larger price": Fault(
        "accounting.certificate:Certificate.from_json",
        "math.isclose(float(stated), cost, rel_tol=_TOLERANCE)",
        "float(stated) >= cost * (1 - _TOLERANCE)",
        certificate("numbers_that_follow_from_events_cannot_be_stated_otherwise"),
    ),
    "a digest is not printed": Fault(
        "accounting.certificate:Certificate._list_statements",
        "self.digest is not None",
        "False",
        certificate_edits("all_that_a_certificate_states_is_printed"),
    ),
    "a certificate for persons speaks of records": Fault(
        "accounting.certificate:Certificate._list_statements",
        "self.max_rows",
        "None",
        of_persons("the_certificate_is_for_persons"),
    ),
    "a certificate of nothing is verified": Fault(
        "accounting.verification:_parse",
        "not certificate.events",
        "False",
        command_line("verify_prints_what_is_certified_and_what_is_not_as_it_should_be"),
    ),
    "a release may touch no data": Fault(
        "accounting.certificate_form:read_event",
        "reveals_nothing(event)",
        "False",
        certificate_edits("contradictory_or_empty_certificates_are_refused"),
    ),
    "a release counts each time": Fault(
        "accounting.composition:compose",
        "any(set(digests) <= set(group[0]) for group in alike)",
        "False",
        composition("a_release_counts_once_by_its_digest[parts3-1]"),
    ),
    "releases that share a digest count once": Fault(
        "accounting.composition:compose",
        "any(set(digests) <= set(group[0]) for group in alike)",
        "alike",
        composition("a_release_counts_once_by_its_digest[parts4-2]"),
    ),
    "releases without a digest count once": Fault(
        "accounting.composition:compose",
        "any(set(digests) <= set(group[0]) for group in alike)",
        "any(set(digests) <= set(group[0]) for group in groups)",
        composition("a_release_counts_once_by_its_digest[parts8-2]"),
    ),
    "a digest may be given to cheaper events": Fault(
        "accounting.composition:compose",
        "group[1] != releases",
        "len(group[1]) != len(releases)",
        composition("one_digest_of_different_events_is_refused[other0]"),
    ),
    "digests of composed releases are forgotten": Fault(
        "accounting.composition:compose",
        "(*one, digests)",
        "(*one, ())",
        composition("a_release_counts_once_by_its_digest[parts1-2]"),
    ),
    "digests of parts are not saved": Fault(
        "accounting.certificate_form:read_digests",
        'release.get("digests", shared)',
        "shared",
        composition("a_release_counts_once_by_its_digest[parts1-2]"),
    ),
    "a digest may be edited": Fault(
        "accounting.certificate_form:read_digests",
        'own and "digest" in data',
        "False",
        composition("edited_digests_are_refused[<lambda>0]"),
    ),
    "of persons the least number of rows is said": Fault(
        "accounting.composition:join",
        "max(max_rows, default=None)",
        "min(max_rows, default=None)",
        composition("persons_of_different_numbers_of_rows[max_rows0]"),
    ),
    "of persons the first number of rows is said": Fault(
        "accounting.composition:join",
        "max(max_rows, default=None)",
        "max_rows[0] if max_rows else None",
        composition("persons_of_different_numbers_of_rows[max_rows0]"),
    ),
    "one seed among several fits is not said": Fault(
        "accounting.composition:join",
        "any(certificate.reproducible for certificate in certificates)",
        "all(certificate.reproducible for certificate in certificates)",
        composition("each_member_of_a_composition[Gaussian-seeded]"),
    ),
    "several seeds are not said to be different": Fault(
        "accounting.composition:join",
        "len({c.digest or i for i, c in enumerate(certificates) if c.reproducible}) > 1",
        "len({c.digest or i for i, c in enumerate(certificates) if c.reproducible}) > 2",
        composition("each_member_of_a_composition[seeded-responses]"),
    ),
    "any number of records is that of all fits": Fault(
        "accounting.composition:join",
        "n_records.pop() if len(n_records) == 1 else None",
        "certificates[0].n_records",
        composition("numbers_of_records_are_said_where_all_are_the_same[n_records1-None]"),
    ),
    "δ of several fits is the least": Fault(
        "accounting.composition:join",
        "max(certificate.delta for certificate in certificates)",
        "min(certificate.delta for certificate in certificates)",
        composition("each_member_of_a_composition[Gaussian-Laplace]"),
    ),
    "accountants are mixed": Fault(
        "accounting.composition:join",
        '("relation", "accountant")',
        '("relation",)',
        composition("unlike_terms_are_refused_in_any_order[option1]"),
    ),
    "relations are mixed": Fault(
        "accounting.composition:join",
        '("relation", "accountant")',
        '("accountant",)',
        composition("unlike_terms_are_refused_in_any_order[option0]"),
    ),
    "assumptions are those of the first fit": Fault(
        "accounting.composition:join",
        "[assumption for c in certificates for assumption in c.assumptions]",
        "list(certificates[0].assumptions)",
        composition("each_member_of_a_composition[Gaussian-other]"),
    ),
    "engines of several fits are not said": Fault(
        "accounting.composition:join",
        "_join_names(c.engine for c in certificates if c.engine is not None) or None",
        "None",
        composition("whose_engines_held_rows_is_said"),
    ),
    "moments in many dimensions are those of the mean": Fault(
        "accounting.directions:_log_hyp1f1",
        "-a * np.log1p(-t / b) * (1 + 1e-12)",
        "a * t / b",
        "tests/accounting/test_directions.py::test_moments_in_many_dimensions_are_bounded_closely",
    ),
    "values of H are split by their own mean": Fault(
        "accounting.directions:split_law",
        "log_ndtr(-np.sqrt(values) / (2 * noise_multiplier))",
        "-1e-6 * values",
        "tests/accounting/test_directions.py::test_splitting_lowers_no_average",
    ),
    "values of H are rounded up to a few": Fault(
        "accounting.loss_distributions:_law_of",
        "sensitivity_law(base.n_features, base.n_projections, base.orthogonal, n_values=5000)",
        "sensitivity_law(base.n_features, base.n_projections, base.orthogonal)",
        accounting("delta_of_one_sliced_release_matches_quadrature"),
    ),
    "rounding of rows is that of little noise": Fault(
        "accounting.events:SlicedGaussianDpEvent.rounding",
        "max(2.0**-21, 2.0**-39 * self.noise_multiplier)",
        "2.0**-21",
        accounting("rounded_rows_are_paid_for_on_the_grid_that_they_are_on"),
    ),
    "ρ of pure releases is half of what it is": Fault(
        "accounting.events:concentrated_rho",
        "gaussian_mu([event]) if epsilon is None else epsilon",
        "gaussian_mu([event]) if epsilon is None else epsilon / math.sqrt(2)",
        composition("readings_of_a_composition_in_closed_form[Gaussian-Laplace]"),
    ),
    "ρ counts releases that are repeated once": Fault(
        "accounting.events:concentrated_rho",
        "count * mu**2",
        "mu**2",
        composition("readings_of_a_composition_in_closed_form[Laplace-responses]"),
    ),
    "ρ of what is not known is left out": Fault(
        "accounting.events:concentrated_rho",
        "return None",
        "continue",
        composition("readings_of_a_composition_in_closed_form[Gaussian-sampled]"),
    ),
    "a budget is rounded up to a float": Fault(
        "accounting.rounding:at_most",
        "nearest if nearest <= number else math.nextafter(nearest, -math.inf)",
        "nearest",
        release_rounding("numbers_become_floats_that_are_not_above_them"),
    ),
    "parameters are computed with in their own type": Fault(
        "accounting.rounding:plain_numbers",
        "plain(value)",
        "value",
        release_rounding("parameters_are_plain_inside_and_as_given_outside"),
    ),
    "ε is printed as the nearest number": Fault(
        "accounting.rounding:show",
        "Context(_DIGITS, ROUND_CEILING)",
        "Context(_DIGITS)",
        release_rounding("printed_numbers_are_never_less"),
    ),
    "what is beyond the grid costs nothing": Fault(
        "accounting.loss_distributions:_pmf",
        "create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta)",
        "create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta - delta[-1])",
        accounting("losses_beyond_the_grid_count_as_infinite"),
    ),
    "records of another class cost nothing more": Fault(
        "accounting.loss_distributions:_laws_of_change",
        "[law, larger._replace(values=larger.values / 2)]",
        "[law]",
        sampled("a_record_of_another_class_costs_more_than_one_of_its_own"),
    ),
    "the rounding of two rows costs nothing": Fault(
        "accounting.loss_distributions:_laws_of_change",
        "law.values + base.rounding",
        "law.values",
        sampled("rounding_moves_two_rows_apart_by_at_most_what_is_paid_for"),
    ),
    "gradients under replace_one are booked as records of a sum": Fault(
        "accounting.loss_distributions:pld_of",
        'sampling == "fixed" or compares_any_two(base, relation)',
        'sampling == "fixed"',
        accounting("three_releases_that_are_alike_far_apart_cost_at_most_what_is_certified"),
    ),
    "products are not paid for": Fault(
        "accounting.moments:_log_moment",
        'base.beside + (base.rounding if relation == "replace_one" else 0.0)',
        'base.rounding if relation == "replace_one" else 0.0',
        sliced_products("both_together_cost_one_gaussian_release"),
    ),
    "moments of two records of a sum for any two releases": Fault(
        "accounting.moments:_sampled_log_moment",
        "1 / base.noise_multiplier",
        "1 / (2 * base.noise_multiplier)",
        accounting("moments_of_any_two_of_three_releases"),
    ),
    "moments of a record that is replaced are those of one that is left out": Fault(
        "accounting.moments:_replace_log_moment",
        "np.r_[0.0, bound]",
        "alone[: _MAX_SAMPLED_ORDER + 1]",
        accounting("poisson_moments_under_replace_one_bound_quadrature"),
    ),
    "parameters may be other than those of the fit": Fault(
        "accounting.provenance:Provenance.check",
        "sorted({name for name, _ in fitted.items() ^ given.items()})",
        "[]",
        saving("a_file_cannot_contradict_its_certificate"),
    ),
    "names of estimators add up": Fault(
        "accounting.composition:_join_names",
        'text.split(" and ")',
        "[text]",
        composition("compositions_are_composed_as_their_parts_are[Gaussian-seeded-responses]"),
    ),
    "a plan may cost more than its budget": Fault(
        "accounting.plan:Plan.__post_init__",
        "cost > self.epsilon",
        "cost > self.epsilon * (1 + 1e-2)",
        curator("a_plan_that_overruns_by_a_millionth_is_refused"),
    ),
    "a search makes more runs than it pays for": Fault(
        "accounting.selection:select_best",
        "noise.number_of_runs(event.mean, event.shape)",
        "noise.number_of_runs(4 * event.mean, event.shape)",
        selection("an_audit_of_what_a_search_tells"),
    ),
    "a search that has failed does not say what is charged": Fault(
        "accounting.selection:select_best",
        "released and isinstance(error, Exception)",
        "False",
        search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "more clones than there are": Fault(
        "accounting.shuffling:_clones",
        "1 - 1e-12",
        "1 + 1e-3",
        shuffling("delta_is_that_of_the_theorem"),
    ),
    "numbers of clones are counted as the largest of a group": Fault(
        "accounting.shuffling:_clones",
        "edges[:-1]",
        "edges[1:] - 1",
        shuffling("groups_of_clones_are_counted_as_the_smallest_of_each"),
    ),
    "errors of some types do not say what was spent": Fault(
        "accounting.spending:report_spent_on_error",
        "BaseException",
        "(RuntimeError, ValueError, KeyboardInterrupt)",
        spending("errors_of_learning_say_what_was_spent[ZeroDivisionError]"),
    ),
    "an interrupt does not say what was spent": Fault(
        "accounting.spending:report_spent_on_error",
        "BaseException",
        "Exception",
        spending(
            "errors_that_callers_tell_apart_keep_their_type_and_get_a_note[KeyboardInterrupt-False]"
        ),
    ),
    "an error does not hold its release": Fault(
        "accounting.spending:report_spent_on_error",
        """kept = {"certificate": spent, "release": release}""",
        """kept = {"certificate": spent, "release": None}""",
        spending("an_error_keeps_its_release"),
    ),
    "errors while rows are read are quoted": Fault(
        "accounting.spending:read_at_full_price",
        "not isinstance(error, PublicError)",
        "False",
        curator("errors_while_rows_are_read_are_withheld_and_charge_all[True-KeyError]"),
    ),
    "errors while rows are read carry those that they come from": Fault(
        "accounting.spending:read_at_full_price",
        "restated = restate_with_price(error, reason, plan, kinds)",
        "raise restate_with_price(error, reason, plan, kinds)",
        curator("errors_while_rows_are_read_are_withheld_and_charge_all[True-KeyError]"),
    ),
    "warnings of NumPy are shown while rows are read": Fault(
        "accounting.spending:read_at_full_price",
        "muted(RuntimeWarning)",
        "muted(DeprecationWarning)",
        curator("warnings_of_numpy_that_rows_cause_are_muted"),
    ),
    "a run that has failed states its own price": Fault(
        "accounting.spending:report_spent_on_error",
        "not is_search_run()",
        "True",
        search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "an error states the price of the last of the fits before": Fault(
        "accounting.spending:report_finished_fits_on_error",
        "compose(*certificates)",
        "certificates[-1]",
        spending("an_error_of_one_of_several_fits_states_what_the_others_cost_together"),
    ),
    "an error of one of several fits loses its release": Fault(
        "accounting.spending:report_finished_fits_on_error",
        "vars(restated).update(vars(error))",
        "pass",
        spending("an_error_of_one_of_several_fits_keeps_its_release"),
    ),
    "a refusal in a run states the price of the run": Fault(
        "accounting.spending:restate_with_price",
        "price * (not is_search_run())",
        "price",
        search("an_error_states_the_price_of_the_search_and_no_other"),
    ),
    "a name may occur twice in a certificate": Fault(
        "accounting.strict_json:_dict_of_distinct",
        "len(members) < len(pairs)",
        "False",
        signatures("a_member_that_occurs_twice_is_refused"),
    ),
    "a certificate may have unknown members": Fault(
        "accounting.strict_json:check_members",
        "data.keys() - known.keys()",
        "[data.pop(name) for name in data.keys() - known.keys()][:0]",
        certificate_edits("all_edits_are_refused_or_seen[full]"),
    ),
    "members of a certificate may be anything": Fault(
        "accounting.strict_json:check_members",
        "not known[name].allows(value)",
        "False",
        certificate_edits("contradictory_or_empty_certificates_are_refused"),
    ),
    "true is a number of JSON": Fault(
        "accounting.strict_json:_is_a",
        "isinstance(given, cls) and not isinstance(given, bool)",
        "isinstance(given, cls)",
        strict_json("number"),
    ),
    "digits of a digest may be followed by others": Fault(
        "accounting.strict_json:hexadecimal",
        "pattern.fullmatch(given)",
        "pattern.match(given)",
        strict_json("hexadecimal"),
    ),
    "texts may hold what nobody sees": Fault(
        "accounting.strict_json:_is_text",
        'type(given) is str and given.isprintable() and given == given.strip() != ""',
        'type(given) is str and given == given.strip() != ""',
        strict_json("text"),
    ),
    "a person moves sums as a record does": Fault(
        "accounting.units:unit_sensitivity",
        'max_rows * max(sensitivity(relation), sensitivity("zero_out"))',
        'max(sensitivity(relation), sensitivity("zero_out"))',
        persons("a_person_moves_sums_by_no_more_than_is_claimed[sum-zero_out-4]"),
    ),
    "replacing a person is thought to be replacing rows": Fault(
        "accounting.units:unit_sensitivity",
        'max(sensitivity(relation), sensitivity("zero_out"))',
        "sensitivity(relation)",
        persons("a_person_moves_sums_by_no_more_than_is_claimed[always one-replace_one-4]"),
    ),
    "persons are not said to have identifiers that are unlike": Fault(
        "accounting.units:unit_assumptions",
        "(_ONE_IDENTIFIER, _UNLIKE)",
        "(_ONE_IDENTIFIER,)",
        "tests/accounting/test_units.py::test_assumptions_of_a_certificate_for_persons",
    ),
    "a unit may contradict what is assumed": Fault(
        "accounting.units:check_unit",
        "others in assumptions",
        "False",
        certificate_edits("contradictory_or_empty_certificates_are_refused"),
    ),
    "verify takes a certificate that is not signed": Fault(
        "accounting.verification:read_certificate",
        "public_key is not None and not is_signed",
        "False",
        signatures("a_signature_by_others_proves_nothing"),
    ),
    "verify does not check a signature": Fault(
        "accounting.verification:_read_payload",
        '{"verify_signature": public_key is not None}',
        '{"verify_signature": False}',
        signatures("a_signature_covers_the_whole_text"),
    ),
    "verify does not compare δ with the number of records": Fault(
        "accounting.verification:verify",
        "min(_LARGEST_DELTA, 1 / (certificate.n_records or 1))",
        "_LARGEST_DELTA",
        certificate("verify_warns_of_a_delta_that_could_cover_whole_records"),
    ),
    "other events claim a charge by its digest": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "paid == replace(charge, digest=plan.follows)",
        "paid.digest == plan.follows",
        budget("only_a_plan_of_the_same_events_claims_a_charge"),
    ),
    "multipliers in compositions are read as over the sensitivity": Fault(
        "accounting.events:scale_noise",
        "ComposedDpEvent(tuple(scale_noise(one, find_factor) for one in event.events))",
        "event",
        certificate("a_composition_in_one_event_has_the_readings_of_its_parts[replace_one]"),
    ),
    "an interrupted run of a search states its own price": Fault(
        "accounting.spending:note_price",
        "not is_search_run()",
        "True",
        spending("a_run_of_a_search_notes_no_price_of_its_own"),
    ),
    "multipliers are halved twice where grids do not reach": Fault(
        "accounting.accountants:PLDAccountant.__init__",
        "RDPAccountant(leaves, relation)",
        "RDPAccountant({over_sensitivity(e, relation): n for e, n in leaves.items()}, relation)",
        accounting("where_grids_do_not_reach_the_price_is_that_of_moments[replace_one]"),
    ),
}

FUNCTION = {
    "small budgets are refused for samples": Fault(
        "accounting.calibration:calibrate_under",
        "contextlib.suppress(ValueError)",
        "contextlib.nullcontext()",
        calibration("sampled_releases_are_planned_at_small_budgets[0.01]"),
    ),
    "a certificate tells a seed": Fault(
        "accounting.provenance",
        '("random_state", "device", "verbose")',
        '("device", "verbose")',
        certificate("the_origin_says_who_made_it_when_and_with_what"),
    ),
}
