"""Schemas from metadata documents, written as the tools of each format write them."""

import contextlib
import json
import warnings
from dataclasses import replace

import pandas as pd
import pytest

from skdpgen.tables import (
    Boolean,
    Category,
    Date,
    Identifier,
    Number,
    Ordered,
    Ordinal,
    Schema,
    Unique,
    Unknown,
)

TEXTS = Category(missing=True)


@contextlib.contextmanager
def lost(*parts):
    """Expect one warning that names all parts, or none if there are no parts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == bool(parts), messages
    for part in parts:
        assert part in messages[0]
    assert all(warning.filename == __file__ for warning in caught)


def read_sdv(**columns):
    return Schema.from_metadata({"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "columns": columns})


def read_field(**field):
    return Schema.from_metadata({"fields": [{"name": "x", **field}]})["x"]


def read_property(spec, required=True):
    document = {"type": "object", "properties": {"x": spec}, "required": ["x"] * required}
    return Schema.from_metadata(document)["x"]


def read_sql(columns):
    pytest.importorskip("sqlglot")
    return Schema.from_metadata(f"CREATE TABLE t ({columns});")


def may_be_missing(column):
    """Return a column whose values may be missing, which is what documents say by default."""
    if isinstance(column, Identifier | Unknown):
        return column
    return replace(column, missing=True)


# SDV.

HOTEL = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest_email",
    "alternate_keys": ["credit_card_number"],
    "columns": {
        "guest_email": {"sdtype": "email", "pii": True},
        "has_rewards": {"sdtype": "boolean"},
        "room_type": {"sdtype": "categorical"},
        "amenities_fee": {"sdtype": "numerical", "computer_representation": "Float"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "checkin_date": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "booked": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        "paid": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
        "credit_card_number": {"sdtype": "credit_card_number", "pii": True},
        "billing_country": {"sdtype": "country_code", "pii": False},
        "note": {"sdtype": "unknown", "pii": True},
    },
    "column_relationships": [],
}


def test_a_table_of_sdv():
    with lost():
        schema = Schema.from_metadata(HOTEL)
    assert dict(schema) == {
        "guest_email": Identifier(),
        "has_rewards": Boolean(missing=True),
        "room_type": TEXTS,
        "amenities_fee": Number(missing=True),
        "nights": Number(decimals=0, missing=True),
        "checkin_date": Unknown(date_format="%d %b %Y", expected="date"),
        "booked": Date(missing=True),
        "paid": Date(unit="second", missing=True),
        "credit_card_number": Identifier(),
        "billing_country": TEXTS,
        "note": Unknown(),
    }


def test_one_of_several_tables_of_sdv():
    hotels = {
        "primary_key": "hotel_id",
        "columns": {"hotel_id": {"sdtype": "id", "regex_format": "HID_[0-9]{3}"}},
    }
    stays = {
        "columns": {
            "hotel_id": {"sdtype": "id", "regex_format": "HID_[0-9]{3}"},
            "rating": {"sdtype": "numerical", "computer_representation": "UInt8"},
        },
        "column_relationships": [{"type": "address", "column_names": ["rating"]}],
        "sequence_key": "hotel_id",
    }
    relation = {
        "parent_table_name": "hotels",
        "parent_primary_key": "hotel_id",
        "child_table_name": "stays",
        "child_foreign_key": "hotel_id",
    }
    document = {"METADATA_SPEC_VERSION": "V1", "relationships": [relation]}
    document["tables"] = {"hotels": hotels, "stays": stays}
    with pytest.raises(ValueError, match=r"several tables, \['hotels', 'stays'\]; choose one by"):
        Schema.from_metadata(document)
    with pytest.raises(ValueError, match="no table 'guests'"):
        Schema.from_metadata(document, table="guests")
    with lost():
        schema = Schema.from_metadata(document, table="hotels")
    assert schema["hotel_id"] == Identifier(template="HID_{:03d}")
    with lost("'hotel_id': foreign key, sequence_key", "'rating': column relationship address"):
        schema = Schema.from_metadata(document, table="stays")
    assert schema["rating"] == Number(0, decimals=0, missing=True)
    del document["tables"]["stays"]
    assert Schema.from_metadata(document).names == ("hotel_id",)


def test_ordered_categories_and_lacking_types_of_sdv():
    column = read_sdv(x={"sdtype": "categorical", "order": ["low", "high"]})["x"]
    assert column == Ordinal(["low", "high"], missing=True)
    assert read_sdv(x={"sdtype": "numerical"})["x"] == Number(missing=True)
    with pytest.raises(ValueError, match="Column 'x' of the SDV metadata cannot be read"):
        read_sdv(x={})


def test_composite_keys_of_sdv():
    columns = {name: {"sdtype": "categorical"} for name in "abc"}
    document = {"columns": columns, "primary_key": ["a", "b"], "alternate_keys": [["b", "c"]]}
    schema = Schema.from_metadata(document)
    assert schema.rules == (Unique(["a", "b"]), Unique(["b", "c"]))
    assert (schema["a"], schema["c"]) == (Category(), TEXTS)


# Frictionless.


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ({"type": "integer"}, Number(decimals=0, missing=True)),
        ({"type": "number", "constraints": {"minimum": "0.5", "maximum": 2}}, Number(0.5, 2)),
        ({"type": "integer", "constraints": {"minimum": 0.5, "maximum": 9.9}}, Number(1, 9, 0)),
        ({"type": "integer", "constraints": {"exclusiveMinimum": 0}}, Number(1, decimals=0)),
        ({"type": "year", "constraints": {"minimum": 1990}}, Number(1990, decimals=0)),
        ({"type": "string"}, TEXTS),
        ({"type": "string", "constraints": {"enum": ["a", "b"]}}, Category(["a", "b"])),
        ({"type": "string", "constraints": {"enum": ["", "b"]}}, Category(["b"])),
        ({"type": "string", "constraints": {"pattern": "^(A|B+|C)$"}}, TEXTS),
        ({"type": "string", "constraints": {"pattern": "^(A|B|C)$"}}, Category(["A", "B", "C"])),
        ({"type": "integer", "constraints": {"enum": ["1", "2"]}}, Category([1, 2])),
        ({"type": "integer", "categories": [0, 1, 2]}, Category([0, 1, 2])),
        (
            {"type": "integer", "categories": [{"value": 0, "label": "no"}, {"value": 1}]},
            Category([0, 1]),
        ),
        (
            {"type": "string", "categories": ["l", "h"], "categoriesOrdered": True},
            Ordinal(["l", "h"]),
        ),
        ({"type": "boolean"}, Boolean()),
        ({"type": "boolean", "trueValues": ["yes"], "falseValues": ["no", "0"]}, Boolean()),
        ({"type": "date"}, Date()),
        ({"type": "date", "constraints": {"minimum": "2020-01-01"}}, Date("2020-01-01")),
        ({"type": "date", "format": "%Y-%m-%d"}, Date()),
        ({"type": "datetime"}, Date(unit="second")),
        ({"type": "datetime", "tz": "Europe/Vienna"}, Date(unit="second", zone="Europe/Vienna")),
        ({"type": "datetime", "format": "%Y-%m-%dT%H:%M:%SZ"}, Date(unit="second", zone="UTC")),
        (
            {"type": "datetime", "constraints": {"minimum": "2020-01-01T12:00:00Z"}},
            Date("2020-01-01T12:00:00", unit="second", zone="UTC"),
        ),
        ({"type": "any"}, Unknown()),
        ({}, Unknown()),
        ({"type": "date", "format": "%d/%m/%Y"}, Unknown(date_format="%d/%m/%Y", expected="date")),
        (
            {"type": "number", "decimalChar": ",", "groupChar": "."},
            Unknown(decimal=",", thousands=".", expected="number"),
        ),
        ({"type": "integer", "groupChar": ","}, Unknown(thousands=",", expected="integer")),
        ({"type": "integer", "constraints": {"unique": True, "minimum": 100}}, Identifier(100)),
        ({"type": "string", "constraints": {"unique": True}}, Identifier()),
        (
            {"type": "string", "constraints": {"unique": True, "pattern": r"^P-\d{5}$"}},
            Identifier(template="P-{:05d}"),
        ),
    ],
)
def test_fields_of_frictionless(field, column):
    expected = ("'x': pattern ^(A|B+|C)$.",) if "B+" in str(field) else ()
    with lost(*expected):
        assert read_field(**field) == may_be_missing(column)


@pytest.mark.parametrize(
    ("field", "column", "parts"),
    [
        (
            {"type": "string", "constraints": {"pattern": "^[A-Z]+$", "maxLength": 9}},
            TEXTS,
            ["'x': pattern ^[A-Z]+$, maxLength 9."],
        ),
        ({"type": "string", "format": "email"}, TEXTS, ["format email"]),
        ({"type": "string", "format": "uuid"}, Identifier(random=True), ["UUIDs may repeat"]),
        ({"type": "time"}, TEXTS, ["type time"]),
        ({"type": "yearmonth"}, TEXTS, ["type yearmonth"]),
        ({"type": "date", "format": "any"}, Date(missing=True), ["any format"]),
        ({"type": "date", "format": "%B"}, TEXTS, ["'%B'"]),
        (
            {"type": "number", "bareNumber": False},
            Number(missing=True),
            ["currencies and percent signs"],
        ),
        (
            {"type": "number", "constraints": {"exclusiveMinimum": 0}},
            Number(0, missing=True),
            ["lower bound 0 is exclusive"],
        ),
        (
            {"type": "integer", "constraints": {"minimum": -(2**63), "maximum": 9}},
            Number(upper=9, decimals=0, missing=True),
            ["its lower bound"],
        ),
        (
            {"type": "boolean", "trueValues": ["J", "ja"], "falseValues": ["N"]},
            Category(["N", "J", "ja"], missing=True),
            ["boolean, as it is written"],
        ),
        (
            {"type": "number", "missingValues": ["", "-", "-99"]},
            Number(missing=True),
            ["'x': that '-99' stand for missing values"],
        ),
        ({"type": "string", "missingValues": ["-"]}, TEXTS, ["'-'"]),
        (
            {"type": "date", "format": "%d.%m.%Y", "constraints": {"minimum": "01.01.2020"}},
            Unknown(date_format="%d.%m.%Y", expected="date"),
            ["minimum 01.01.2020"],
        ),
    ],
)
def test_losses_of_a_field(field, column, parts):
    with lost(*parts):
        assert Schema.from_metadata({"fields": [{"name": "x", **field}]})["x"] == column


def test_keys_of_frictionless():
    document = {
        "fields": [
            {"name": "id", "type": "integer"},
            {"name": "ward", "type": "string"},
            {"name": "day", "type": "date", "constraints": {"unique": True}},
        ],
        "primaryKey": "id",
        "uniqueKeys": [["ward", "day"], ["id"]],
        "foreignKeys": [{"fields": ["ward"], "reference": {"resource": "w", "fields": ["id"]}}],
    }
    with lost("'ward': foreign key"):
        schema = Schema.from_metadata(document)
    assert schema["id"] == Identifier()
    assert schema.rules == (Unique("day"), Unique(["ward", "day"]))
    package = {"name": "p", "resources": [{"name": "a", "path": "a.csv", "schema": document}]}
    with lost("'ward': foreign key"):
        assert Schema.from_metadata(package) == schema
    package["resources"].append({"name": "b", "path": "b.csv", "schema": "b.json"})
    with pytest.raises(ValueError, match="several tables"):
        Schema.from_metadata(package)
    with pytest.raises(ValueError, match=r"'b\.json' as its 'schema'"):
        Schema.from_metadata(package, table="b")


def test_pandas_metadata_is_read_without_its_rows():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "kind": pd.Categorical(["b", "a"], ["b", "a"], ordered=True),
            "when": pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True),
        }
    )
    schema = Schema.from_metadata(json.loads(frame.to_json(orient="table")))
    assert dict(schema) == {
        "index": Identifier(),
        "n": Number(decimals=0, missing=True),
        "kind": Ordinal(["b", "a"], missing=True),
        "when": Date(unit="second", missing=True, zone="UTC"),
    }


# JSON Schema.


@pytest.mark.parametrize(
    ("spec", "column"),
    [
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 10}, Number(0, 9, 0)),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, Number(1, decimals=0)),
        ({"type": ["number", "null"], "maximum": 1.5}, Number(upper=1.5, missing=True)),
        ({"type": ["integer", "number"]}, Number()),
        ({"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0}, Number(0.01, decimals=2)),
        ({"type": "number", "multipleOf": 1}, Number(decimals=0)),
        ({"type": "string", "enum": ["a", "b"]}, Category(["a", "b"])),
        ({"enum": ["a", None]}, Category(["a"], missing=True)),
        ({"enum": [1, 2.5]}, Category([1, 2.5])),
        ({"enum": [True, False, None]}, Boolean(missing=True)),
        ({"const": "a"}, Category(["a"])),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, Category(["a", "b"])),
        ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, Number(3, None, 0)),
        ({"$ref": "#/$defs/Colour"}, Category(["red", "blue"])),
        ({"allOf": [{"$ref": "#/$defs/Colour"}], "default": "red"}, Category(["red", "blue"])),
        ({"type": "boolean"}, Boolean()),
        ({"type": "integer", "nullable": True, "format": "int64"}, Number(decimals=0)),
        ({"type": "string", "format": "date"}, Date()),
        ({"type": "string", "format": "date-time"}, Date(unit="second", zone="UTC")),
        ({"type": "string"}, Category()),
        ({}, Unknown()),
        (True, Unknown()),
    ],
)
def test_properties_of_json_schema(spec, column):
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"Colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"}},
        "type": "array",
        "items": {"type": "object", "properties": {"x": spec}, "required": ["x"]},
    }
    with lost():
        found = Schema.from_metadata(document)["x"]
    if "anyOf" in str(spec) or "nullable" in str(spec):
        assert found.missing
        column = may_be_missing(column)
    assert found == column
    del document["items"]["required"]
    assert Schema.from_metadata(document)["x"].missing


@pytest.mark.parametrize(
    ("spec", "column", "part"),
    [
        ({"type": "string", "pattern": "^x+$", "minLength": 1}, Category(), "pattern ^x+$, minLen"),
        ({"type": "integer", "multipleOf": 5}, Number(decimals=0), "multipleOf 5"),
        ({"type": "number", "multipleOf": 0.5}, Number(decimals=1), "multipleOf 0.5"),
        ({"type": ["string", "integer"]}, Unknown(), "one of several types"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, Unknown(), "anyOf of several"),
        ({"type": "string", "format": "email"}, Category(), "format email"),
    ],
)
def test_losses_of_a_property(spec, column, part):
    with lost(part):
        document = {"type": "object", "properties": {"x": spec}, "required": ["x"]}
        assert Schema.from_metadata(document)["x"] == column


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "array", "items": {"type": "string"}}, "'array'"),
        ({"type": "object"}, "'object'"),
        ({"$ref": "other.json"}, "another document"),
        ({"$ref": "#/$defs/none"}, "not in the document"),
        ({"$ref": "#/properties/x"}, "circle"),
        ({"enum": ["a", 1]}, "all strings or all numbers"),
        ({"type": "integer", "minimum": 5, "maximum": 5}, "lower must be below upper"),
        ({"type": "integer", "minimum": "five"}, "bounds must be numbers"),
    ],
)
def test_properties_that_no_column_holds(spec, message):
    with pytest.raises(ValueError, match=f"Column 'x' of the JSON Schema.*{message}.*declared="):
        read_property(spec)


def test_constraints_of_objects_are_lost():
    document = {"type": "object", "properties": {"x": {"type": "string"}}, "if": {}, "x-y": 1}
    with lost("the table: if."):
        Schema.from_metadata({**document, "additionalProperties": False})


# SQL.

POSTGRES = """
--
-- PostgreSQL database dump
--
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TYPE public.mood AS ENUM (
    'sad',
    'happy'
);
ALTER TYPE public.mood OWNER TO me;
CREATE TABLE public.patients (
    id integer NOT NULL,
    age smallint NOT NULL,
    sex character varying(1),
    mood public.mood DEFAULT 'sad'::public.mood NOT NULL,
    income numeric(10,2) DEFAULT 0.00,
    admitted timestamp with time zone DEFAULT now() NOT NULL,
    left_at timestamp without time zone,
    "Blood Type" text,
    ward integer,
    CONSTRAINT patients_age_check CHECK (((age >= 18) AND (age <= 90))),
    CONSTRAINT patients_sex_check CHECK (((sex)::text = ANY
        ((ARRAY['F'::character varying, 'M'::character varying])::text[])))
);
ALTER TABLE public.patients OWNER TO me;
ALTER TABLE ONLY public.patients
    ADD CONSTRAINT patients_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.patients
    ADD CONSTRAINT patients_ward FOREIGN KEY (ward) REFERENCES public.wards(id);
CREATE INDEX i ON public.patients USING btree (age);
"""

MYSQL = """
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
CREATE TABLE `orders` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `size` enum('S','M','L') COLLATE utf8mb4_unicode_ci DEFAULT NULL,
  `paid` tinyint(1) NOT NULL DEFAULT '0',
  `qty` int(10) unsigned DEFAULT NULL COMMENT 'how many',
  `price` decimal(8,2) NOT NULL,
  `made` year DEFAULT NULL,
  `total` decimal(9,2) GENERATED ALWAYS AS (`price` * `qty`) STORED,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`size`,`qty`),
  KEY `k` (`qty`),
  CONSTRAINT `ck` CHECK ((`qty` between 1 and 10))
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4;
"""

TSQL = """
SET ANSI_NULLS ON
GO
CREATE TABLE [dbo].[People](
    [Id] [int] IDENTITY(1,1) NOT NULL,
    [Name] [nvarchar](50) NOT NULL,
    [Note] [nvarchar](max) NULL,
    [Active] [bit] NOT NULL,
    [When] [datetime2](7) NULL,
 CONSTRAINT [PK_People] PRIMARY KEY CLUSTERED
(
    [Id] ASC
)WITH (PAD_INDEX = OFF) ON [PRIMARY]
) ON [PRIMARY]
GO
"""


def test_a_dump_of_postgresql(tmp_path, capfd):
    pytest.importorskip("sqlglot")
    path = tmp_path / "dump.sql"
    path.write_text(POSTGRES, encoding="utf-8")
    with lost("'sex': length 1; 'income': precision 10; 'ward': foreign key."):
        schema = Schema.from_metadata(path)
    assert dict(schema) == {
        "id": Identifier(),
        "age": Number(18, 90, 0),
        "sex": Category(["F", "M"], missing=True),
        "mood": Category(["sad", "happy"]),
        "income": Number(decimals=2, missing=True),
        "admitted": Date(unit="second", zone="UTC"),
        "left_at": Date(unit="second", missing=True),
        "Blood Type": TEXTS,
        "ward": Number(decimals=0, missing=True),
    }
    assert capfd.readouterr() == ("", "")


def test_a_dump_of_mysql():
    pytest.importorskip("sqlglot")
    with lost("'price': precision 8", "'total': precision 9, that it is computed as"):
        schema = Schema.from_metadata(MYSQL)
    assert dict(schema) == {
        "id": Identifier(),
        "size": Category(["S", "M", "L"], missing=True),
        "paid": Boolean(),
        "qty": Number(1, 10, 0, missing=True),
        "price": Number(decimals=2),
        "made": Number(decimals=0, missing=True),
        "total": Number(decimals=2, missing=True),
    }
    assert schema.rules == (Unique(["size", "qty"]),)


def test_a_script_of_sql_server():
    pytest.importorskip("sqlglot")
    with lost("'Name': length 50", "'When': fractions of seconds finer than milliseconds"):
        schema = Schema.from_metadata(TSQL)
    assert dict(schema) == {
        "Id": Identifier(),
        "Name": Category(),
        "Note": TEXTS,
        "Active": Boolean(),
        "When": Date(unit="millisecond", missing=True),
    }


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ("x SERIAL PRIMARY KEY", Identifier()),
        ("x UUID PRIMARY KEY", Identifier(random=True)),
        ("x TEXT UNIQUE", Identifier()),
        ("x INT CHECK (x > 0 AND 9 >= x)", Number(1, 9, 0, missing=True)),
        ("x INT CHECK (x > 0), CHECK (x >= -5)", Number(1, None, 0, missing=True)),
        ("x INT CHECK (x IN (1, 2))", Category([1, 2], missing=True)),
        ("x TEXT NOT NULL CHECK (x IN ('a', 'b') OR x IS NULL)", Category(["a", "b"])),
        ("x INT CHECK (x IS NOT NULL)", Number(decimals=0)),
        ("x FLOAT CHECK (x BETWEEN -1.5 AND 1e3)", Number(-1.5, 1000, missing=True)),
        ("x DATE CHECK (x >= DATE '2020-01-01')", Date("2020-01-01", missing=True)),
        ("x DATE CHECK (x >= '2020-01-01')", Date("2020-01-01", missing=True)),
        ("x BOOLEAN NOT NULL", Boolean()),
        ("x TIMESTAMP", Date(unit="second", missing=True)),
        ("x TIMESTAMP(0)", Date(unit="second", missing=True)),
        ("x TIMESTAMP(3) WITH TIME ZONE", Date(unit="millisecond", missing=True, zone="UTC")),
        (
            "x DATETIME(3) CHECK (x >= '2020-01-01 00:00:00.25')",
            Date("2020-01-01T00:00:00.250", unit="millisecond", missing=True),
        ),
        ("x", Unknown()),
    ],
)
def test_columns_of_sql(columns, column):
    with lost():
        assert read_sql(columns)["x"] == column


def test_constraints_between_columns_of_sql():
    columns = "a DATE, b DATE, c TEXT, CHECK (b > a), UNIQUE (a, c)"
    with lost():
        schema = read_sql(columns)
    assert schema.rules == (Unique(["a", "c"]), Ordered("a", "b", strict=True))
    with lost("'a': CHECK (a <> c), a <= c (a, c)", "'c': CHECK (LENGTH(c) < 3), CHECK (a <> c)"):
        read_sql("a DATE, c TEXT, CHECK (a <= c), CHECK (length(c) < 3), CHECK (a <> c)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE a (x INT); CREATE TABLE b (x INT);", r"several tables, \['a', 'b'\]"),
        ("CREATE TABLE a (x BYTEA)", "Column 'x'.*VARBINARY"),
        ("CREATE TABLE a (x mood)", "Column 'x'.*not defined"),
        ("CREATE TABLE a (x INT[])", "Column 'x'.*INT"),
        ("CREATE TABLE a AS SELECT 1", "no CREATE TABLE that can be read"),
        ("CREATE TABLE a (x INT", "no CREATE TABLE that can be read"),
    ],
)
def test_sql_that_cannot_be_read(text, message):
    pytest.importorskip("sqlglot")
    with pytest.raises(ValueError, match=message):
        Schema.from_metadata(text)


def test_sql_needs_sqlglot(monkeypatch):
    monkeypatch.setattr("skdpgen.metadata.sql.sqlglot", None)
    with pytest.raises(ImportError, match=r"pip install 'skdpgen\[metadata\]'"):
        Schema.from_metadata("CREATE TABLE t (x INT)")


# All formats.


def test_schemas_of_this_library_are_read(tmp_path):
    schema = Schema({"a": Number(0, 9), "type": Boolean()}, [Unique("a")])
    assert Schema.from_metadata(schema.to_dict()) == schema
    path = tmp_path / "schema.json"
    schema.to_json(path)
    assert Schema.from_metadata(path) == schema
    assert Schema.from_metadata({"schema": schema.to_dict(), "report": []}) == schema
    declared = {"a": Number(0, 5)}
    assert Schema.from_metadata(path, declared=declared)["a"] == Number(0, 5)
    names = {"fields": Boolean(), "columns": Boolean(), "properties": Boolean(), "schema": TEXTS}
    assert Schema.from_metadata(Schema(names).to_dict()) == Schema(names)


@pytest.mark.parametrize("document", [{}, {"a": 1}, "[1]", '{"a": ', {"fields": []}])
def test_unknown_documents(document, tmp_path):
    if document == "[1]":
        path = tmp_path / "list.json"
        path.write_text(document)
        document = path
    with pytest.raises(ValueError, match=r"no known format|no columns|not valid JSON"):
        Schema.from_metadata(document)


def test_documents_that_are_not_as_they_should_be():
    with pytest.raises(ValueError, match="more than once"):
        Schema.from_metadata({"fields": [{"name": "x"}, {"name": "x"}]})
    with pytest.raises(ValueError, match="needs a 'name'"):
        Schema.from_metadata({"fields": [{"type": "string"}]})
    with pytest.raises(ValueError, match="not as its format demands"):
        Schema.from_metadata({"fields": ["x"]})
    with pytest.raises(ValueError, match=r"does not have: \['y'\]"):
        Schema.from_metadata({"fields": [{"name": "x"}]}, declared={"y": Unknown()})


def test_declared_columns_are_not_read():
    document = {"fields": [{"name": "x", "type": "geojson"}, {"name": "y", "type": "time"}]}
    with pytest.raises(ValueError, match="'geojson'"):
        Schema.from_metadata(document)
    with lost():
        schema = Schema.from_metadata(document, declared={"x": {"type": "unknown"}, "y": TEXTS})
    assert dict(schema) == {"x": Unknown(), "y": TEXTS}


# Writing.

EXACT = Schema(
    {
        "id": Identifier(100),
        "age": Number(18, 90, 0),
        "pay": Number(upper=1.5, missing=True),
        "sex": Category(["F", "M"], missing=True),
        "code": Category([1, 2]),
        "text": Category(missing=True),
        "size": Ordinal(["S", "L"]),
        "ok": Boolean(),
        "day": Date("2020-01-01", "2020-12-31"),
        "at": Date("2020-01-01T12:00:00", unit="second", missing=True, zone="Europe/Vienna"),
        "exact": Date("2020-01-01T00:00:00.250", "2020-02-01", unit="millisecond"),
        "any": Unknown(),
        "money": Unknown(decimal=",", thousands=".", expected="number"),
        "odd": Unknown(date_format="%d/%m/%Y", expected="date"),
    },
    [Unique(["age", "sex"])],
)


def test_frictionless_keeps_what_it_can_express(tmp_path):
    path = tmp_path / "schema.json"
    with lost():
        document = EXACT.to_metadata(path)
        assert Schema.from_metadata(document) == Schema.from_metadata(path) == EXACT
    two = Schema({"a": Identifier(template="P{:04d}"), "b": Identifier(random=True)})
    with lost():
        assert Schema.from_metadata(two.to_metadata()) == two


def test_losses_of_frictionless_are_named():
    schema = Schema(
        {
            "pay": Number(0, 9, decimals=2, scale="log"),
            "job": Category(["a", "b"], other="c"),
            "day": Date(unit=None, n_knots=4),
            "n": Unknown(expected="integer"),
            "m": Number(0, 9),
        },
        [Ordered("pay", "m")],
    )
    with lost(
        "'pay': decimals, scale; 'job': categories, other; 'day': unit, n_knots; "
        "'n': that it is Unknown(expected='integer'); "
        "the rule Ordered(lower='pay', upper='m')."
    ):
        document = schema.to_metadata()
    assert document["fields"][1]["categories"] == ["a", "b", "c"]


def test_sdv_keeps_what_it_can_express(tmp_path):
    schema = Schema(
        {
            "id": Identifier(template="P{:04d}"),
            "n": Number(decimals=0, missing=True),
            "x": Number(missing=True),
            "job": Category(missing=True),
            "ok": Boolean(missing=True),
            "day": Date(missing=True),
            "at": Date(unit="second", missing=True, zone="UTC"),
            "exact": Date(unit="millisecond", missing=True),
            "odd": Unknown(date_format="%d/%m/%Y", expected="date"),
            "any": Unknown(),
            "size": Ordinal(["S", "L"], missing=True),
        }
    )
    with lost():
        document = schema.to_metadata(tmp_path / "sdv.json", format="sdv")
        assert Schema.from_metadata(document) == schema
    assert json.loads((tmp_path / "sdv.json").read_text()) == document
    with lost("'age': lower, upper, missing; 'pay': upper; 'sex': categories, ", "rule Unique"):
        EXACT.to_metadata(format="sdv")


def test_other_formats_are_not_written():
    with pytest.raises(ValueError, match="format must be one of"):
        EXACT.to_metadata(format="sql")
    with pytest.raises(ValueError, match=r"to_metadata\(format='sdv'\)"):
        Schema({"age": Number(18, 90)}).to_metadata("sdv")
