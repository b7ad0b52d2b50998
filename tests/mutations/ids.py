"""Identifiers of tests, by short names for their files."""


def _in(path):
    return lambda test: f"tests/{path}::test_{test}"


accounting = _in("accounting/test_accountants.py")
budget = _in("accounting/test_budget.py")
budget_files = _in("accounting/test_budget_files.py")
budget_processes = _in("accounting/test_budget_processes.py")
calibration = _in("accounting/test_calibration.py")
certificate = _in("accounting/test_certificate.py")
certificate_edits = _in("accounting/test_certificate_edits.py")
compatibility = _in("accounting/test_compatibility.py")
composition = _in("accounting/test_composition.py")
dp_accounting = _in("accounting/test_dp_accounting.py")
release_rounding = _in("accounting/test_rounding.py")
selection = _in("accounting/test_selection.py")
shuffling = _in("accounting/test_shuffling.py")
signatures = _in("accounting/test_signatures.py")
spending = _in("accounting/test_spending.py")
isolation = _in("test_isolation.py")
survival = _in("test_survival.py")
adaptation = _in("adaptation/test_domain_adapter.py")
search = _in("adaptation/test_private_search.py")
arrays = _in("arrays/test_arrays.py")
arrays_inference = _in("arrays/test_inference.py")
audit = _in("auditing/test_audit.py")
audit_reports = _in("auditing/test_audit_reports.py")
audit_statistics = _in("auditing/test_audit_statistics.py")
history_cells = _in("curator/test_histories.py")
histories = _in("mechanisms/test_histories.py")
history_fits = _in("generators/test_histories.py")
history_parts = _in("engines/test_partitioned_histories.py")
history_particles = _in("learners/test_histories.py")
history_rules = _in("generators/test_history_rules.py")
fit_audit = _in("auditing/test_fit_audit.py")
refuting = _in("auditing/test_refuting.py")
options = _in("cli/test_options.py")
outputs = _in("cli/test_outputs.py")
previews = _in("cli/test_previews.py")
summaries = _in("cli/test_summaries.py")
cells = _in("curator/test_cells.py")
neighbours = _in("curator/test_neighbours.py")
chunks = _in("curator/test_chunks.py")
curator = _in("curator/test_curator.py")
persons = _in("curator/test_persons.py")
record_functions = _in("curator/test_record_functions.py")
records = _in("curator/test_records.py")
rehearsal = _in("learners/test_rehearsal.py")
secrets = _in("curator/test_secrets.py")
engines = _in("engines/test_partitioned.py")
files = _in("engines/test_files.py")
report = _in("evaluation/test_report.py")
report_page = _in("evaluation/test_report_page.py")
verdicts = _in("evaluation/test_verdicts.py")
dpaf = _in("generators/test_dpaf.py")
ldp_entropic_gan = _in("generators/test_ldp_entropic_gan.py")
of_persons = _in("generators/test_persons.py")
partial_rows = _in("generators/test_partial_rows.py")
published = _in("generators/test_published.py")
schema_report = _in("generators/test_schema_report.py")
sizes = _in("generators/test_sketch_sizes.py")
flow = _in("generators/test_sliced_flow.py")
sliced_wasserstein = _in("generators/test_sliced_wasserstein.py")
streams = _in("generators/test_streams.py")
strata = _in("tables/test_strata.py")
tables = _in("generators/test_tables.py")
aligning = _in("learners/test_adaptation.py")
interactions = _in("learners/test_interactions.py")
estimates = _in("inference/test_estimates.py")
limits = _in("inference/test_limits.py")
by_level = _in("learners/test_levels.py")
normals = _in("learners/test_normals.py")
aggregates = _in("mechanisms/test_aggregates.py")
counts = _in("mechanisms/test_category_counts.py")
level_counts = _in("mechanisms/test_level_counts.py")
samplers = _in("mechanisms/test_exact_samplers.py")
gradients = _in("mechanisms/test_gradients.py")
local = _in("mechanisms/test_local.py")
noise = _in("mechanisms/test_noise.py")
mechanisms_rounding = _in("mechanisms/test_rounding.py")
sampled = _in("mechanisms/test_sampled.py")
sliced_products = _in("mechanisms/test_sliced_products.py")
stream_sums = _in("mechanisms/test_streams.py")
sums = _in("mechanisms/test_sums.py")
two_way = _in("mechanisms/test_tables.py")
multi_way = _in("mechanisms/test_multi_way.py")
components = _in("networks/test_components.py")
privatizer = _in("preprocessing/test_local_privatizer.py")
conditions = _in("tables/test_conditions.py")
containers = _in("tables/test_containers.py")
decimals = _in("tables/test_decimals.py")
strange = _in("tables/test_strange_columns.py")
inference = _in("tables/test_inference.py")
marginal_calibration = _in("tables/test_marginal_calibration.py")
heaps = _in("tables/test_heaps.py")
identifiers = _in("tables/test_identifiers.py")
densities = _in("tables/test_densities.py")
location = _in("tables/test_location.py")
point_masses = _in("tables/test_point_masses.py")
ranges = _in("tables/test_ranges.py")
rules = _in("tables/test_rules.py")
schema = _in("tables/test_schema.py")
table_encoder = _in("tables/test_table_encoder.py")
texts = _in("tables/test_texts.py")
base = _in("test_base.py")
devices = _in("test_devices.py")
command_line = _in("test_command_line.py")
edges = _in("test_edges.py")
forecasts = _in("test_forecasts.py")
few_rows = _in("test_few_rows.py")
muting = _in("test_muting.py")
quality = _in("test_quality.py")
saving = _in("test_saving.py")
searches = _in("test_searches.py")
products = _in("transport/test_products.py")


def common(check, estimator="sliced-pca"):
    return f"tests/test_common.py::test_generator[{estimator}-{check}]"


def fuzz(kind):
    return f"tests/fuzz/test_fuzz.py::test_a_few_cases[{kind}]"


def independent(mechanism):
    test = f"test_no_two_numbers_share_their_noise[{mechanism}]"
    return f"tests/mechanisms/test_independent_noise.py::{test}"


def rounding(case):
    test = "no_vector_of_whole_numbers_is_longer_than_its_bound"
    return f"tests/mechanisms/test_rounding.py::test_{test}[{case}]"


def strict_json(member):
    test = "a_member_is_what_is_declared_and_nothing_that_looks_like_it"
    return f"tests/accounting/test_strict_json.py::test_{test}[{member}]"
