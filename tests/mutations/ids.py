"""Identifiers of tests, by short names for their files."""


def _in(path):
    return lambda test: f"tests/{path}::test_{test}"


accounting = _in("accounting/test_accountants.py")
budget = _in("accounting/test_budget.py")
budget_files = _in("accounting/test_budget_files.py")
budget_processes = _in("accounting/test_budget_processes.py")
certificate = _in("accounting/test_certificate.py")
certificate_edits = _in("accounting/test_certificate_edits.py")
composition = _in("accounting/test_composition.py")
figures = _in("accounting/test_figures.py")
selection = _in("accounting/test_selection.py")
sharing = _in("accounting/test_sharing.py")
shuffling = _in("accounting/test_shuffling.py")
spending = _in("accounting/test_spending.py")
adaptation = _in("adaptation/test_domain_adapter.py")
search = _in("adaptation/test_private_search.py")
options = _in("cli/test_options.py")
outputs = _in("cli/test_outputs.py")
report = _in("evaluation/test_report.py")
arrays = _in("formats/test_arrays.py")
atoms = _in("formats/test_atoms.py")
conditions = _in("formats/test_conditions.py")
decimals = _in("formats/test_decimals.py")
evening = _in("formats/test_evening.py")
inference = _in("formats/test_inference.py")
open_box = _in("formats/test_open_box.py")
ranges = _in("formats/test_ranges.py")
rules = _in("formats/test_rules.py")
schema = _in("formats/test_schema.py")
table_encoder = _in("formats/test_table_encoder.py")
texts = _in("formats/test_texts.py")
dpaf = _in("generators/test_dpaf.py")
ldp_entropic_gan = _in("generators/test_ldp_entropic_gan.py")
of_persons = _in("generators/test_persons.py")
schema_report = _in("generators/test_schema_report.py")
sizes = _in("generators/test_sketch_sizes.py")
flow = _in("generators/test_sliced_flow.py")
sliced_wasserstein = _in("generators/test_sliced_wasserstein.py")
tables = _in("generators/test_tables.py")
aligning = _in("learners/test_adaptation.py")
interactions = _in("learners/test_interactions.py")
by_level = _in("learners/test_levels.py")
normals = _in("learners/test_normals.py")
components = _in("networks/test_components.py")
privatizer = _in("preprocessing/test_local_privatizer.py")
aggregates = _in("privacy/mechanisms/test_aggregates.py")
counts = _in("privacy/mechanisms/test_category_counts.py")
gradients = _in("privacy/mechanisms/test_gradients.py")
local = _in("privacy/mechanisms/test_local.py")
mechanisms_rounding = _in("privacy/mechanisms/test_rounding.py")
sampled = _in("privacy/mechanisms/test_sampled.py")
sliced_products = _in("privacy/mechanisms/test_sliced_products.py")
sums = _in("privacy/mechanisms/test_sums.py")
two_way = _in("privacy/mechanisms/test_tables.py")
three_way = _in("privacy/mechanisms/test_three_way.py")
audit = _in("privacy/test_audit.py")
audit_reports = _in("privacy/test_audit_reports.py")
audit_statistics = _in("privacy/test_audit_statistics.py")
cells = _in("privacy/test_cells.py")
chunks = _in("privacy/test_chunks.py")
curator = _in("privacy/test_curator.py")
engines = _in("privacy/test_engines.py")
samplers = _in("privacy/test_exact_samplers.py")
fit_audit = _in("privacy/test_fit_audit.py")
noise = _in("privacy/test_noise.py")
owners = _in("privacy/test_owners.py")
persons = _in("privacy/test_persons.py")
record_functions = _in("privacy/test_record_functions.py")
records = _in("privacy/test_records.py")
refuting = _in("privacy/test_refuting.py")
secrets = _in("privacy/test_secrets.py")
base = _in("test_base.py")
command_line = _in("test_command_line.py")
edges = _in("test_edges.py")
few_rows = _in("test_few_rows.py")
muting = _in("test_muting.py")
quality = _in("test_quality.py")
saving = _in("test_saving.py")
products = _in("transport/test_products.py")


def common(check, estimator="sliced-pca"):
    return f"tests/test_common.py::test_generator[{estimator}-{check}]"


def fuzz(kind):
    return f"tests/fuzz/test_fuzz.py::test_a_few_cases[{kind}]"


def independent(mechanism):
    test = f"test_no_two_numbers_share_their_noise[{mechanism}]"
    return f"tests/privacy/test_independent_noise.py::{test}"


def rounding(case):
    test = "no_vector_of_whole_numbers_is_longer_than_its_bound"
    return f"tests/privacy/mechanisms/test_rounding.py::test_{test}[{case}]"


def strict_json(member):
    test = "a_member_is_what_is_declared_and_nothing_that_looks_like_it"
    return f"tests/accounting/test_strict_json.py::test_{test}[{member}]"
