# SPDX-License-Identifier: BSD-3-Clause
"""Definitions of tables in SQL: ``CREATE TABLE``, as databases dump it.

sqlglot parses them, which is an optional package.
"""

import logging
import re
from contextlib import contextmanager

from .fields import Description, Field, choose_table

NAME = "SQL"
_CREATE = re.compile(r"\bcreate\s+(?:\w+\s+){0,2}table\b", re.IGNORECASE)
_ENUM = re.compile(
    r"""\bcreate\s+type\s+(?:[\w"]+\.)?"?(\w+)"?\s+as\s+enum\s*\(([^)]*)\)""", re.IGNORECASE
)
_LEVEL = re.compile(r"'((?:[^']|'')*)'")
# Dialects are tried in this order: those of which a sign is in the text, then the others.
_SIGNS = {"mysql": "`", "tsql": "[", "postgres": ""}
_DIALECTS = ("postgres", "mysql", "tsql", "sqlite", "oracle", "snowflake", "bigquery")
# Digits of fractions of seconds by default.
_DIGITS = {"TIMESTAMP_MS": 3, "TIMESTAMP_NS": 9, "DATETIME2": 7}
# Types that are in none of the sets of sqlglot.
_TYPES = {
    **dict.fromkeys(("BOOLEAN", "BIT"), "boolean"),
    **dict.fromkeys(("YEAR", "SERIAL", "SMALLSERIAL", "BIGSERIAL"), "integer"),
    **dict.fromkeys(("DATE", "DATE32"), "date"),
    **dict.fromkeys(("BPCHAR", "ENUM", "ENUM8", "ENUM16", "UUID", "INET", "IPADDRESS"), "string"),
    **dict.fromkeys(("TIME", "TIMETZ"), "time"),
    "INTERVAL": "duration",
}


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    return isinstance(document, str) and _CREATE.search(document) is not None


def read(document: str, table: str | None) -> Description:
    """Return the description of a table in a text."""
    exp, statements = _parse(document)
    tables = {}
    for statement in statements:
        if not isinstance(statement, exp.Create):
            continue
        if isinstance(statement.this, exp.Schema):
            tables[statement.this.this.name] = statement.this
    name = choose_table(tables, table)
    # Few versions of sqlglot parse definitions of types.
    enums = {found[1]: _LEVEL.findall(found[2]) for found in _ENUM.finditer(document)}
    reader = _Reader(exp, enums)
    reader.read_table(tables[name])
    for statement in statements:
        if isinstance(statement, exp.Alter) and statement.this.name == name:
            for action in statement.args.get("actions") or []:
                for constraint in action.expressions if action.expressions else []:
                    reader.read_constraint(constraint)
    return reader.found


def _parse(text):
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise ImportError(
            "Definitions in SQL need sqlglot: pip install 'skdpgen[metadata]'."
        ) from (None)
    # A line of T-SQL that ends a batch.
    text = re.sub(r"(?im)^\s*go\s*$", ";", text)
    likely = [dialect for dialect, sign in _SIGNS.items() if sign in text]
    reason = None
    for dialect in dict.fromkeys([*likely, *_DIALECTS]):
        try:
            with _silent(logging.getLogger("sqlglot")):
                statements = [s for s in sqlglot.parse(text, dialect=dialect) if s is not None]
        except sqlglot.errors.SqlglotError as error:
            # The first error is that of the likeliest dialect.
            reason = reason or str(error).splitlines()[0]
            continue
        if any(isinstance(s, exp.Create) and isinstance(s.this, exp.Schema) for s in statements):
            return exp, statements
    raise ValueError(
        f"The SQL has no CREATE TABLE that can be read ({reason or 'with columns'}). Leave only "
        "that statement in the text."
    )


@contextmanager
def _silent(logger):
    """Drop notes on statements that are not read, such as those on owners."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Reader:
    """Reads the columns and constraints of one table.

    Parameters
    ----------
    exp : module
        The expressions of sqlglot.
    enums : dict of str to list of str
        Types that the text defines.
    """

    def __init__(self, exp, enums):
        self._exp, self._enums = exp, enums
        self.found = Description([])

    def read_table(self, table):
        """Read columns first, then constraints of the table."""
        later = []
        for part in table.expressions:
            if isinstance(part, self._exp.ColumnDef):
                self._read_column(part)
            elif isinstance(part, self._exp.Identifier):
                # SQLite needs no type.
                self.found.fields.append(Field(part.name))
            else:
                later.append(part)
        for part in later:
            self.read_constraint(part)

    def _read_column(self, column):
        field = Field(column.name)
        self.found.fields.append(field)
        self._read_type(field, column.args.get("kind"))
        for constraint in column.args.get("constraints") or []:
            self._read_column_constraint(field, constraint.kind)

    def _read_type(self, field, kind):
        if kind is None:
            return
        name = getattr(kind.this, "name", str(kind.this))
        sizes = [size.name for size in kind.expressions if size.name.isdigit()]
        if name == "USERDEFINED":
            given = kind.args.get("kind")
            short = str(getattr(given, "name", given)).rpartition(".")[2].strip('"')
            if short not in self._enums:
                field.problem = f"its type {kind.sql()} is not defined in the text."
                return
            field.type, field.categories = "string", self._enums[short]
            return
        field.type = self._find_type(name)
        if field.type in ("time", "duration"):
            field.set_type(field.type)
        elif field.type is None and name != "UNKNOWN":
            field.problem = f"no column type holds values of type {kind.sql()}."
        if name.startswith("ENUM"):
            field.categories = [level.name for level in kind.expressions]
        elif name == "TINYINT" and sizes == ["1"]:
            # As MySQL stores booleans.
            field.type = "boolean"
        elif "DECIMAL" in name and sizes:
            field.decimals = int(sizes[1]) if len(sizes) > 1 else 0
            if field.decimals == 0:
                field.type = "integer"
            field.drop("precision", sizes[0])
        elif "CHAR" in name and sizes:
            field.drop("length", sizes[0])
        if name.startswith("U") and field.type in ("integer", "number"):
            field.lower = 0
        if field.type == "datetime":
            # As standard SQL, MySQL and DuckDB write them; others do not say how fine they are.
            field.digits = int(sizes[0]) if sizes else _DIGITS.get(name, 0)
        if name in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
            field.zone = "UTC"
        field.is_random = name == "UUID"
        if name.endswith("SERIAL"):
            field.missing = False

    def _find_type(self, name):
        types = self._exp.DataType
        sets = {"integer": types.INTEGER_TYPES, "number": types.REAL_TYPES}
        sets |= {"datetime": types.TEMPORAL_TYPES, "string": types.TEXT_TYPES}
        found = (word for word, known in sets.items() if name in {t.name for t in known})
        return _TYPES.get(name) or next(found, None)

    def _read_column_constraint(self, field, kind):
        exp = self._exp
        if isinstance(kind, exp.NotNullColumnConstraint):
            field.missing = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            self.found.set_key([field.name])
        elif isinstance(kind, exp.UniqueColumnConstraint):
            field.is_unique = True
        elif isinstance(kind, exp.CheckColumnConstraint):
            self._read_check(kind.this)
        elif isinstance(kind, exp.Reference):
            field.drop("foreign key")
        elif isinstance(kind, exp.ComputedColumnConstraint):
            field.drop("that it is computed as", kind.this.sql())
        elif isinstance(kind, exp.GeneratedAsIdentityColumnConstraint):
            if kind.args.get("expression") is not None:
                field.drop("that it is computed as", kind.args["expression"].sql())
            else:
                field.is_unique, field.missing = True, False

    def read_constraint(self, part):
        """Read a constraint of the table."""
        exp = self._exp
        if isinstance(part, exp.Constraint):
            kinds = part.expressions
            # The columns of a clustered key of T-SQL stand beside it.
            names = [
                name for kind in kinds if not self._is_key(kind) for name in self._list_names(kind)
            ]
            for kind in kinds:
                if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                    self.found.set_key(names)
                else:
                    self.read_constraint(kind)
        elif isinstance(part, exp.PrimaryKey):
            self.found.set_key(self._list_names(part))
        elif isinstance(part, exp.UniqueColumnConstraint):
            self.found.set_unique(self._list_names(part.this))
        elif isinstance(part, exp.ForeignKey):
            self.found.drop_of([name.name for name in part.expressions], "foreign key")
        elif isinstance(part, exp.CheckColumnConstraint):
            self._read_check(part.this)

    def _is_key(self, part):
        exp = self._exp
        return isinstance(part, exp.PrimaryKey | exp.ForeignKey | exp.CheckColumnConstraint)

    def _list_names(self, part):
        """Return the names of the columns of a key, in order."""
        exp = self._exp
        if part is None or isinstance(part, exp.Property | exp.Properties | exp.OnProperty):
            return []
        parts = part.this if isinstance(part.this, list) else part.expressions
        found = []
        for inner in parts or ([part.this] if isinstance(part.this, exp.Expression) else []):
            inner = inner.this if isinstance(inner, exp.Ordered) else inner
            if isinstance(inner, exp.Column | exp.Identifier):
                found.append(inner.name)
        return found

    def _read_check(self, check):
        """Read each part of a condition that all rows obey; note those that cannot be read."""
        exp = self._exp
        check = self._strip(check)
        if isinstance(check, exp.And):
            self._read_check(check.this)
            self._read_check(check.expression)
            return
        if isinstance(check, exp.Or):
            # NULL passes a check anyway.
            parts = [self._strip(check.this), self._strip(check.expression)]
            left = [p for p in parts if not self._is_null_test(p) or p.args.get("negate")]
            if len(left) == 1:
                self._read_check(left[0])
                return
        if not self._read_comparison(check):
            names = dict.fromkeys(column.name for column in check.find_all(exp.Column))
            self.found.drop_of(names, f"CHECK ({check.sql()})")
            if not names:
                self.found.dropped.append(f"CHECK ({check.sql()})")

    def _read_comparison(self, check):
        exp = self._exp
        # Versions of sqlglot differ in how they hold IS NOT NULL.
        test = self._strip(check.this) if isinstance(check, exp.Not) else check
        if self._is_null_test(test) and (test is not check or check.args.get("negate")):
            field = self._find(test.this)
            if field is not None:
                field.missing = False
            return field is not None
        if isinstance(check, exp.Between):
            bounds = [self._read_literal(check.args[end]) for end in ("low", "high")]
            field = self._find(check.this)
            if field is None or None in bounds:
                return False
            field.limit(*bounds)
            return True
        levels = self._list_levels(check)
        if levels is not None:
            field = self._find(check.this)
            if field is None or None in levels:
                return False
            field.categories = levels
            return True
        return self._read_inequality(check)

    def _read_inequality(self, check):
        exp = self._exp
        signs = {exp.GT: (True, True), exp.GTE: (True, False)}
        signs |= {exp.LT: (False, True), exp.LTE: (False, False)}
        if type(check) not in signs:
            return False
        is_lower, is_exclusive = signs[type(check)]
        left, right = self._find(check.this), self._find(check.expression)
        if left is not None and right is not None:
            pair = (right.name, left.name) if is_lower else (left.name, right.name)
            self.found.ordered.append((*pair, is_exclusive))
            return True
        field, other = (left, check.expression) if left is not None else (right, check.this)
        bound = self._read_literal(other)
        if field is None or bound is None:
            return False
        name = "lower" if is_lower == (left is not None) else "upper"
        field.limit(**{name: bound}, is_exclusive=is_exclusive)
        return True

    def _list_levels(self, check):
        """Return the literals of x IN (...), or of x = ANY (ARRAY[...]) as PostgreSQL dumps it."""
        exp = self._exp
        if isinstance(check, exp.In) and check.expressions:
            return [self._read_literal(level) for level in check.expressions]
        if isinstance(check, exp.EQ) and isinstance(check.expression, exp.Any):
            array = self._strip(check.expression.this)
            if isinstance(array, exp.Array):
                return [self._read_literal(level) for level in array.expressions]
        return None

    def _strip(self, node):
        """Return an expression without brackets and casts around it."""
        while isinstance(node, self._exp.Paren | self._exp.Cast):
            node = node.this
        return node

    def _is_null_test(self, node):
        exp = self._exp
        return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)

    def _find(self, node):
        node = self._strip(node)
        return self.found.get(node.name) if isinstance(node, self._exp.Column) else None

    def _read_literal(self, node):
        exp = self._exp
        node = self._strip(node)
        if isinstance(node, exp.Neg):
            value = self._read_literal(node.this)
            return None if value is None or isinstance(value, str) else -value
        if not isinstance(node, exp.Literal):
            return None
        if node.is_string:
            return node.name
        return float(node.name) if re.search("[.eE]", node.name) else int(node.name)
