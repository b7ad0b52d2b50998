"""Faults planted in the package: edits of syntax trees, and the tests that must catch them."""

import ast
import textwrap
from dataclasses import dataclass

_OBJECTS = (ast.ClassDef, ast.FunctionDef)


@dataclass(frozen=True)
class Fault:
    """A change to one object of the package, and the test that must catch it.

    The target names a module and, after a colon, a class, method or function in it:
    "accounting.plan", "accounting.plan:Plan" or "accounting.plan:Plan.check". The expression or the
    statements `old` must occur in the target exactly once; `new` replaces them. Syntax trees are
    compared, so comments, quotes and line breaks do not count.
    """

    test: str
    target: str
    old: str
    new: str

    def find_file(self, package):
        """Return the path of the module."""
        path = package.joinpath(*self.target.partition(":")[0].split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def find(self, tree):
        """Return where `old` stands in the tree of the module, and the nodes of `new`."""
        old, new = _parse(self.old), _parse(self.new)
        if all(len(part) == 1 and isinstance(part[0], ast.Expr) for part in (old, new)):
            old, new = [old[0].value], [new[0].value]
        places = [place for node in self._find_objects(tree) for place in _find(node, old)]
        assert len(places) == 1, f"{self.old!r} is {len(places)} times in {self.target}, not once."
        return *places[0], new

    def edit(self, tree):
        """Replace `old` by `new` in the tree of the module."""
        node, field, position, new = self.find(tree)
        if position is None:
            setattr(node, field, new[0])
        else:
            getattr(node, field)[position] = new

    def apply(self, package):
        """Write the module with the fault."""
        path = self.find_file(package)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.edit(tree)
        path.write_text(ast.unparse(tree), encoding="utf-8")

    def _find_objects(self, tree):
        """Return the nodes that have the name of the target; a property and its setter share it."""
        found = [tree]
        for name in filter(None, self.target.partition(":")[2].split(".")):
            inner = [node for outer in found for node in ast.walk(outer) if node is not outer]
            found = [node for node in inner if isinstance(node, _OBJECTS) and node.name == name]
        return found


def read_faults(path, name):
    """Yield the faults in the marks ``catches`` of a file of tests, which tests call `name`."""
    text = path.read_text(encoding="utf-8")
    nodes = ast.parse(text).body if "mark.catches(" in text else []
    for node in nodes:
        for mark in getattr(node, "decorator_list", ()):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.catches":
                texts = map(ast.literal_eval, mark.args)
                param = "".join(f"[{ast.literal_eval(word.value)}]" for word in mark.keywords)
                yield Fault(f"{name}::{node.name}{param}", *texts)


def _parse(text):
    return ast.parse(textwrap.dedent(text).strip()).body


def _find(root, old):
    """Return each place of `old`: a node, its field and, if that is a list, a slice of it."""
    wanted = [ast.dump(node) for node in old]
    places = []
    for node in ast.walk(root):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                slices = (slice(i, i + len(old)) for i in range(len(value) - len(old) + 1))
                places += [(node, field, at) for at in slices if _equal(value[at], old, wanted)]
            elif _equal([value], old, wanted):
                places.append((node, field, None))
    return places


def _equal(nodes, old, wanted):
    """Compare the types first, which is faster than to write each node down."""
    are_alike = list(map(type, nodes)) == list(map(type, old))
    return are_alike and list(map(ast.dump, nodes)) == wanted
