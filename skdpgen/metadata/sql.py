# SPDX-License-Identifier: BSD-3-Clause
"""Definitions of tables in SQL: ``CREATE TABLE``, as databases dump it.

sqlglot parses them, which is an optional package.
"""

import logging
import re

try:
    import sqlglot
    from sqlglot import exp
except ImportError:
    sqlglot = None  # type: ignore[assignment]

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
    statements = _parse(document)
    schemas = (s.this for s in statements if isinstance(s, exp.Create))
    tables = {schema.this.name: schema for schema in schemas if isinstance(schema, exp.Schema)}
    name = choose_table(tables, table)
    # Few versions of sqlglot parse definitions of types.
    enums = {found[1]: _LEVEL.findall(found[2]) for found in _ENUM.finditer(document)}
    reader = _Reader(tables[name], enums)
    for statement in statements:
        if isinstance(statement, exp.Alter) and statement.this.name == name:
            for action in statement.args.get("actions") or []:
                for constraint in action.expressions or []:
                    reader.read(constraint)
    return reader.found


def _parse(text):
    if sqlglot is None:
        raise ImportError("Definitions in SQL need sqlglot: pip install 'skdpgen[metadata]'.")
    # A line of T-SQL that ends a batch.
    text = re.sub(r"(?im)^\s*go\s*$", ";", text)
    likely = [dialect for dialect, sign in _SIGNS.items() if sign in text]
    logger, reason = logging.getLogger("sqlglot"), None
    level = logger.level
    # It notes statements that are not read, such as those on owners.
    logger.setLevel(logging.CRITICAL)
    try:
        for dialect in dict.fromkeys([*likely, *_DIALECTS]):
            try:
                statements = [s for s in sqlglot.parse(text, dialect=dialect) if s is not None]
            except sqlglot.errors.SqlglotError as error:
                # The first error is that of the likeliest dialect.
                reason = reason or str(error).splitlines()[0]
                continue
            if any(
                isinstance(s, exp.Create) and isinstance(s.this, exp.Schema) for s in statements
            ):
                return statements
    finally:
        logger.setLevel(level)
    raise ValueError(
        f"The SQL has no CREATE TABLE that can be read ({reason or 'with columns'}). Leave only "
        "that statement in the text."
    )


class _Reader:
    """Reads the columns of one table, and then its constraints."""

    def __init__(self, table, enums):
        self._enums = enums
        self.found = Description([])
        later = []
        for part in table.expressions:
            # SQLite needs no type.
            if isinstance(part, exp.ColumnDef | exp.Identifier):
                field = Field(part.name)
                self.found.fields.append(field)
                self._read_type(field, part.args.get("kind"))
                for constraint in part.args.get("constraints") or []:
                    self._read_of_column(field, constraint.kind)
            else:
                later.append(part)
        for part in later:
            self.read(part)

    def _read_type(self, field, given):
        if given is None:
            return
        name = getattr(given.this, "name", str(given.this))
        sizes = [size.name for size in given.expressions if size.name.isdigit()]
        if name == "USERDEFINED":
            own = given.args.get("kind")
            short = str(getattr(own, "name", own)).rpartition(".")[2].strip('"')
            field.type, field.categories = "string", self._enums.get(short)
            if short not in self._enums:
                field.problem = f"its type {given.sql()} is not defined in the text."
            return
        field.type = _find_type(name)
        if field.type in ("time", "duration"):
            field.set_type(field.type)
        elif field.type is None and name != "UNKNOWN":
            field.problem = f"no column type holds values of type {given.sql()}."
        if name.startswith("ENUM"):
            field.categories = [level.name for level in given.expressions]
        elif name == "TINYINT" and sizes == ["1"]:
            # As MySQL stores booleans.
            field.type = "boolean"
        elif "DECIMAL" in name and sizes:
            field.decimals = int(sizes[1]) if len(sizes) > 1 else 0
            field.type = "number" if field.decimals else "integer"
            field.drop("precision", sizes[0])
        elif "CHAR" in name and sizes:
            field.drop("length", sizes[0])
        if name.startswith("U") and field.type in ("integer", "number"):
            field.lower = 0
        if field.type == "datetime":
            # As standard SQL, MySQL and DuckDB write them; others do not say how fine they are.
            field.digits = int(sizes[0]) if sizes else _DIGITS.get(name, 0)
        field.zone = "UTC" if name in ("TIMESTAMPTZ", "TIMESTAMPLTZ") else None
        field.is_random = name == "UUID"
        field.missing = not name.endswith("SERIAL")

    def _read_of_column(self, field, constraint):
        match constraint:
            case exp.NotNullColumnConstraint():
                field.missing = bool(constraint.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint():
                self.found.set_key([field.name])
            case exp.UniqueColumnConstraint():
                field.is_unique = True
            case exp.CheckColumnConstraint():
                self._read_check(constraint.this)
            case exp.Reference():
                field.drop("foreign key")
            case exp.ComputedColumnConstraint():
                field.drop("that it is computed as", constraint.this.sql())
            case exp.GeneratedAsIdentityColumnConstraint():
                formula = constraint.args.get("expression")
                if formula is not None:
                    field.drop("that it is computed as", formula.sql())
                else:
                    field.is_unique, field.missing = True, False

    def read(self, part, names=None):
        """Read a constraint of the table; a named one holds others, and their columns."""
        match part:
            case exp.Constraint():
                # The columns of a clustered key of T-SQL stand beside it.
                keys = exp.PrimaryKey | exp.ForeignKey | exp.CheckColumnConstraint
                beside = [p for p in part.expressions if not isinstance(p, keys)]
                names = [name for inner in beside for name in _list_names(inner)]
                for inner in part.expressions:
                    self.read(inner, names)
            case exp.PrimaryKeyColumnConstraint():
                self.found.set_key(names or [])
            case exp.PrimaryKey():
                self.found.set_key(_list_names(part))
            case exp.UniqueColumnConstraint():
                self.found.set_unique(_list_names(part.this))
            case exp.ForeignKey():
                self.found.drop_of([name.name for name in part.expressions], "foreign key")
            case exp.CheckColumnConstraint():
                self._read_check(part.this)

    def _read_check(self, check):
        """Read each part of a condition that all rows obey; note those that cannot be read."""
        check = _strip(check)
        if isinstance(check, exp.And):
            self._read_check(check.this)
            self._read_check(check.expression)
            return
        if isinstance(check, exp.Or):
            # NULL passes a check anyway.
            parts = [_strip(check.this), _strip(check.expression)]
            left = [p for p in parts if not _is_null_test(p) or p.args.get("negate")]
            if len(left) == 1:
                self._read_check(left[0])
                return
        if not (self._read_values(check) or self._read_inequality(check)):
            names = dict.fromkeys(column.name for column in check.find_all(exp.Column))
            self.found.drop_of(names, f"CHECK ({check.sql()})")
            if not names:
                self.found.dropped.append(f"CHECK ({check.sql()})")

    def _read_values(self, check):
        """Return whether a condition is read that lists or bounds the values of one column."""
        # Versions of sqlglot differ in how they hold IS NOT NULL.
        test = _strip(check.this) if isinstance(check, exp.Not) else check
        is_present = _is_null_test(test) and (test is not check or check.args.get("negate"))
        field = self._find((test if is_present else check).this)
        if field is None:
            return False
        if is_present:
            field.missing = False
            return True
        if isinstance(check, exp.Between):
            values = [_read_literal(check.args[end]) for end in ("low", "high")]
        else:
            values = _list_levels(check)
        if values is None or None in values:
            return False
        if isinstance(check, exp.Between):
            field.limit(*values)
        else:
            field.categories = values
        return True

    def _read_inequality(self, check):
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
        bound = _read_literal(other)
        if field is None or bound is None:
            return False
        name = "lower" if is_lower == (left is not None) else "upper"
        field.limit(**{name: bound}, is_exclusive=is_exclusive)
        return True

    def _find(self, node):
        node = _strip(node)
        return self.found.get(node.name) if isinstance(node, exp.Column) else None


def _find_type(name):
    types = exp.DataType
    sets = {"integer": types.INTEGER_TYPES, "number": types.REAL_TYPES}
    sets |= {"datetime": types.TEMPORAL_TYPES, "string": types.TEXT_TYPES}
    found = (word for word, known in sets.items() if name in {t.name for t in known})
    return _TYPES.get(name) or next(found, None)


def _list_names(part):
    """Return the names of the columns of a key, in order."""
    if part is None or isinstance(part, exp.Property | exp.Properties | exp.OnProperty):
        return []
    parts = part.this if isinstance(part.this, list) else part.expressions
    parts = parts or ([part.this] if isinstance(part.this, exp.Expression) else [])
    inner = (p.this if isinstance(p, exp.Ordered) else p for p in parts)
    return [p.name for p in inner if isinstance(p, exp.Column | exp.Identifier)]


def _list_levels(check):
    """Return the literals of x IN (...), or of x = ANY (ARRAY[...]) as PostgreSQL dumps it."""
    listed = check if isinstance(check, exp.In) else None
    if isinstance(check, exp.EQ) and isinstance(check.expression, exp.Any):
        listed = _strip(check.expression.this)
        listed = listed if isinstance(listed, exp.Array) else None
    levels = listed.expressions if listed is not None else None
    return [_read_literal(level) for level in levels] if levels else None


def _strip(node):
    """Return an expression without brackets and casts around it."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def _is_null_test(node):
    return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)


def _read_literal(node):
    node = _strip(node)
    if isinstance(node, exp.Neg):
        value = _read_literal(node.this)
        return None if value is None or isinstance(value, str) else -value
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.name
    return float(node.name) if re.search("[.eE]", node.name) else int(node.name)
