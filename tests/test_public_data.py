"""Loaders of the benchmarks, on small files of the same structure and on a pretended OpenML."""

import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

# The scripts are there in a clone, and not beside an installed package.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
datasets = pytest.importorskip("public_images")
load_table = pytest.importorskip("public_tables").load_table


def write_npz(folder, name, **arrays):
    np.savez(folder / f"{name}.npz", **arrays)


def write_csv(folder, name, **columns):
    pd.DataFrame(columns).to_csv(folder / f"{name}.csv.gz", index=False)


def bytes_of_shape(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size=shape, dtype=np.uint8)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_grey_images(tmp_path, name):
    x_train, x_test = bytes_of_shape(6, 28, 28), bytes_of_shape(3, 28, 28, seed=1)
    y_train, y_test = np.arange(6, dtype=np.uint8), np.arange(3, dtype=np.uint8)
    write_npz(tmp_path, name, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    data = getattr(datasets, f"load_{name}")(tmp_path)
    np.testing.assert_allclose(data.X_train, x_train.reshape(6, 784) / 255, rtol=1e-6)
    np.testing.assert_allclose(data.X_test, x_test.reshape(3, 784) / 255, rtol=1e-6)
    assert data.X_train.dtype == np.float32
    assert data.y_train.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.y_test.tolist() == [0, 1, 2]
    assert data.y_train.dtype == np.int64
    assert data.image_shape == (28, 28)


def test_float_images_keep_their_scale(tmp_path):
    x = np.random.default_rng(0).random((4, 16, 16), dtype=np.float32)
    y = np.arange(4, dtype=np.uint8)
    write_npz(tmp_path, "usps", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    data = datasets.load_usps(tmp_path)
    assert np.array_equal(data.X_train, x.reshape(4, 256))


def test_rgb_images_are_channels_first(tmp_path):
    x = bytes_of_shape(5, 32, 32, 3)
    y = np.arange(5, dtype=np.uint8)
    write_npz(tmp_path, "cifar10_12k", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    data = datasets.load_cifar10(tmp_path)
    images = data.X_train.reshape(5, *data.image_shape)
    for channel in range(3):
        np.testing.assert_allclose(images[:, channel], x[..., channel] / 255, rtol=1e-6)


def test_table_with_a_split_and_odd_strings(tmp_path):
    write_csv(
        tmp_path,
        "adult",
        age=[20, 30, 40, 50],
        workclass=["?", "None", "NA", "Private"],
        income=["<=50K", ">50K", "<=50K", ">50K"],
        split=["train", "test", "train", "train"],
    )
    data = load_table("adult", tmp_path)
    assert data.feature_names == ["age", "workclass"]
    assert data.X_train["age"].tolist() == [20, 40, 50]
    assert data.X_train["workclass"].tolist() == ["?", "NA", "Private"]
    assert data.X_test["workclass"].tolist() == ["None"]
    assert data.y_train.tolist() == ["<=50K", "<=50K", ">50K"]
    assert data.y_test.tolist() == [">50K"]
    assert data.target_names.tolist() == ["<=50K", ">50K"]


def test_numeric_columns_with_gaps_become_numbers(tmp_path):
    write_csv(
        tmp_path,
        "cervical_cancer",
        Smokes=["0.0", "?", "1.0", "2.5"] * 4,
        Mixed=["1", "?", "V27", "3"] * 4,
        Unknown=["?"] * 16,
        **dict.fromkeys(["Hinselmann", "Schiller", "Citology"], [0] * 16),
        Biopsy=[0, 0, 1, 1] * 4,
    )
    data = load_table("cervical_cancer", tmp_path)
    X = pd.concat([data.X_train, data.X_test]).sort_index()
    assert list(X) == ["Smokes", "Mixed", "Unknown"]
    np.testing.assert_array_equal(X["Smokes"], [0, np.nan, 1, 2.5] * 4)
    assert X["Mixed"].tolist() == ["1", "?", "V27", "3"] * 4
    assert X["Unknown"].tolist() == ["?"] * 16
    assert data.y_test.value_counts().to_dict() == {0: 2, 1: 2}


@pytest.mark.parametrize(
    ("loader", "file", "target", "dropped"),
    [
        ("bank_marketing", "bank_marketing", "y", []),
        ("diabetes130", "diabetes130", "readmitted", ["encounter_id", "patient_nbr"]),
    ],
)
def test_tables_drop_what_is_no_feature_and_stratify(tmp_path, loader, file, target, dropped):
    write_csv(
        tmp_path,
        file,
        **dict.fromkeys(dropped, range(20)),
        amount=range(20),
        kind=["None", "b"] * 10,
        **{target: ["common"] * 16 + ["rare"] * 4},
    )
    data = load_table(loader, tmp_path)
    assert list(data.X_train) == ["amount", "kind"]
    assert data.X_train.shape == (15, 2)
    assert data.y_test.tolist().count("rare") == 1
    # The rows of X and y still belong together.
    assert ((data.X_train["amount"] >= 16) == (data.y_train == "rare")).all()


def test_regression_target_is_split_without_classes(tmp_path):
    write_csv(tmp_path, "california_housing", MedInc=range(8), MedHouseVal=np.arange(8) + 0.5)
    data = load_table("california_housing", tmp_path)
    assert len(data.X_test) == 2
    assert (data.y_train == data.X_train["MedInc"] + 0.5).all()
    assert "target_names" not in data


def test_office_caltech_has_the_domains_of_the_file(tmp_path):
    counts = np.array([[0, 3], [100, 2]], dtype=np.uint8)
    labels = np.array([4, 9], dtype=np.uint8)
    names = np.array(list("abcdefghij"))
    write_npz(tmp_path, "office_caltech_surf", class_names=names, dslr_X=counts, dslr_y=labels)
    data = datasets.load_office_caltech(data_home=tmp_path)
    assert data.domains == ["dslr"]
    assert data.dslr.X.tolist() == [[0, 3], [100, 2]]
    assert data.dslr.X.dtype == np.float32
    assert data.dslr.y.tolist() == [4, 9]
    assert data.target_names.tolist() == list("abcdefghij")
    assert "image_shape" not in data


def test_office_caltech_images_are_channels_first(tmp_path):
    x = bytes_of_shape(2, 32, 32, 3)
    y = np.array([0, 1], dtype=np.uint8)
    write_npz(
        tmp_path, "office_caltech_images32", class_names=np.array(["a"]), amazon_X=x, amazon_y=y
    )
    data = datasets.load_office_caltech("images32", data_home=tmp_path)
    images = data.amazon.X.reshape(2, *data.image_shape)
    np.testing.assert_allclose(images[:, 2], x[..., 2] / 255, rtol=1e-6)


# Which folder, and what is said when there is none.


def write_housing(folder, n_rows):
    folder.mkdir()
    write_csv(folder, "california_housing", MedInc=range(n_rows), MedHouseVal=[0.5] * n_rows)


def test_the_argument_goes_before_the_environment(tmp_path, monkeypatch):
    write_housing(tmp_path / "few", 4)
    write_housing(tmp_path / "many", 8)
    monkeypatch.setenv("SKDPGEN_DATA", str(tmp_path / "few"))
    assert len(load_table("california_housing").X_train) == 3
    assert len(load_table("california_housing", str(tmp_path / "many")).X_train) == 6


@pytest.mark.parametrize("folder", ["", "no_such_folder"])
def test_file_missing_in_the_folder(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz is not in the data folder"):
        datasets.load_mnist(tmp_path / folder)
    with pytest.raises(FileNotFoundError, match=r"office_caltech_surf\.npz is not in the data"):
        datasets.load_office_caltech(data_home=tmp_path / folder)


@pytest.mark.parametrize(
    ("loader", "file"),
    [
        (lambda: load_table("california_housing"), "california_housing.csv.gz"),
        (lambda: load_table("cervical_cancer"), "cervical_cancer.csv.gz"),
        (datasets.load_office_caltech, "office_caltech_surf.npz"),
    ],
)
def test_no_folder_for_a_set_that_is_read_from_a_file_only(monkeypatch, loader, file):
    monkeypatch.delenv("SKDPGEN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=f"data_home.*SKDPGEN_DATA.*{file}"):
        loader()


def test_unknown_office_caltech_features(tmp_path):
    with pytest.raises(ValueError, match=r"features must be one of .*'surf'.*got 'resnet'"):
        datasets.load_office_caltech("resnet", data_home=tmp_path)


# OpenML, pretended.


@pytest.fixture
def openml(monkeypatch):
    """Set what OpenML answers; the calls are kept."""
    calls = []

    def answer(data=None, target=None, error=None):
        def fetch(name, *, version, as_frame):
            calls.append((name, version, as_frame))
            if error is not None:
                raise error
            return Bunch(data=data, target=target)

        monkeypatch.setattr("public_images.fetch_openml", fetch)
        return calls

    monkeypatch.delenv("SKDPGEN_DATA", raising=False)
    return answer


def test_openml_mnist_keeps_the_official_split(openml):
    X = np.zeros((60_003, 784), dtype=np.float32)
    X[60_000, 5], X[0, 6] = 255, 51
    y = np.array([str(i % 10) for i in range(len(X))], dtype=object)
    calls = openml(X, y)
    data = datasets.load_mnist()
    assert calls == [("mnist_784", 1, False)]
    assert data.X_train.shape == (60_000, 784)
    assert data.X_train.dtype == np.float32
    assert data.X_test[0, 5] == 1
    assert data.X_train[0, 6] == pytest.approx(0.2)
    assert data.y_train[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert data.y_test.tolist() == [0, 1, 2]
    assert data.y_train.dtype == np.int64
    assert data.image_shape == (28, 28)


def test_openml_usps_range_and_labels(openml):
    X = np.tile(np.linspace(-1, 1, 256), (40, 1))
    # Sorted as strings, "10" would come before "2".
    y = np.repeat([str(i) for i in range(1, 11)], 4).astype(object)
    X[:, 0] = np.linspace(-1, 1, 40)
    calls = openml(X, y)
    data = datasets.load_usps()
    assert calls == [("USPS", 2, False)]
    assert data.X_train.shape == (30, 256)
    rows = np.rint(data.X_train[:, 0] * 39).astype(int)
    assert np.array_equal(data.y_train, rows // 4)
    assert data.X_train[:, -1].tolist() == [1] * 30
    assert data.X_train.min() >= 0


def test_openml_adult_looks_like_the_file(openml):
    names = (
        "age workclass fnlwgt education education-num marital-status occupation relationship "
        "race sex capital-gain capital-loss hours-per-week native-country"
    ).split()
    frame = pd.DataFrame({name: np.arange(8) for name in names})
    frame["workclass"] = pd.Categorical(["Private", None] * 4)
    frame["education-num"] = pd.Categorical(list("12345678"))
    target = pd.Series(pd.Categorical(["<=50K", ">50K"] * 4), name="class")
    calls = openml(frame, target)
    data = load_table("adult")
    assert calls == [("adult", 2, True)]
    X = pd.concat([data.X_train, data.X_test]).sort_index()
    assert list(X)[3:6] == ["education", "education_num", "marital_status"]
    assert X["workclass"].tolist() == ["Private", "?"] * 4
    assert X["education_num"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert X["education_num"].dtype == np.int64
    assert data.y_test.name == "income"
    assert sorted(data.y_test) == ["<=50K", ">50K"]
    assert frame["workclass"].isna().any()  # what OpenML gave is left alone


def test_openml_bank_marketing_gets_its_names_back(openml):
    frame = pd.DataFrame({f"V{i}": np.arange(8) for i in range(1, 17)})
    openml(frame, pd.Series(pd.Categorical(["1", "2"] * 4), name="Class"))
    data = load_table("bank_marketing")
    assert data.feature_names[0] == "age"
    assert data.feature_names[-1] == "poutcome"
    assert (data.y_train == data.X_train["age"].map(lambda row: ["no", "yes"][row % 2])).all()


@pytest.mark.parametrize("error", [URLError("no network"), ValueError("checksum differs")])
def test_openml_unreachable(openml, error):
    openml(error=error)
    with pytest.raises(OSError, match=r"'mnist_784'.*data_home.*SKDPGEN_DATA.*mnist\.npz"):
        datasets.load_mnist()
    with pytest.raises(OSError, match=r"'adult'.*data_home.*SKDPGEN_DATA.*adult\.csv\.gz"):
        load_table("adult")
