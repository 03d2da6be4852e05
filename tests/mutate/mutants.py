"""Source of a module → its mutants, in a fixed order.

Annotations, decorators, assertions, texts, and arguments that only guard against mistakes (`strict=True`) are
not mutated.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MODULE = "<module>"
_SHORT = 90  # characters of the surrounding expression in a mutant's key
_SMALL = (
    16  # integers up to this change by one, larger ones are doubled and halved: 10**9 ± 1 is the same limit
)
_NOT_BEHAVIOR = frozenset(
    ("strict", "frozen", "slots", "exist_ok", "copy", "assume_unique", "dtype", "daemon")
)
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_FUNCTIONS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any", "sum": "max", "mean": "max", "median": "mean", "floor": "ceil", "ceil": "floor",
}  # fmt: skip
_OF_ARRAYS = ("at", "reduce", "reduceat", "accumulate")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SHOWN = (ast.expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.keyword)
_SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Mutant:
    """A mutant. `number`: its index in the module; `nth`: its number among those of the function that read
    the same.
    """

    number: int
    function: str
    line: int
    before: str
    after: str
    nth: int = 1

    @property
    def key(self) -> str:
        """Identifies the mutant in the list of equivalents; survives edits elsewhere in the module."""
        return f"{self.function}: {self.before} → {self.after}" + (f" #{self.nth}" if self.nth > 1 else "")


class _Place(NamedTuple):
    """The place of an expression: a field of its parent, or an element of such a field."""

    parent: ast.AST
    name: str
    at: int = -1

    def put(self, node: ast.AST) -> None:
        if self.at < 0:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.at] = node


class _Change(NamedTuple):
    place: _Place
    old: ast.AST
    new: ast.AST
    function: str
    is_guard: bool = False


class _Scope(NamedTuple):
    function: str = MODULE
    returns_bool: bool = False


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module."""
    n_alike: dict[tuple[str, str, str], int] = {}
    result = []
    for number, change in enumerate(_changes(ast.parse(source))):
        before, after = _texts(change)
        like = change.function, before, after
        n_alike[like] = n_alike.get(like, 0) + 1
        result.append(Mutant(number, change.function, _line(change), before, after, n_alike[like]))
    return result


def has_mutants(source: str) -> bool:
    """Whether a module has any, without describing them."""
    return next(_changes(ast.parse(source)), None) is not None


def mutated(source: str, number: int) -> str:
    """The source of one mutant."""
    tree = ast.parse(source)
    for position, change in enumerate(_changes(tree)):
        if position == number:
            change.place.put(change.new)
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    raise IndexError(f"The module has no mutant {number}.")


def _changes(tree: ast.Module) -> Iterator[_Change]:
    for i, statement in enumerate(tree.body):
        yield from _below(statement, _Place(tree, "body", i), _Scope())


def _line(change: _Change) -> int:
    return int(getattr(change.old, "lineno", getattr(change.place.parent, "lineno", 0)))


def _texts(change: _Change) -> tuple[str, str]:
    """The mutated expression before and after, with its surrounding expression if that is short."""
    context = change.place.parent
    if change.is_guard and isinstance(context, ast.If):
        return f"if {ast.unparse(context.test)}: {type(context.body[0]).__name__.lower()}", "without it"
    if not isinstance(context, _SHOWN) or len(ast.unparse(context)) > _SHORT:
        return ast.unparse(change.old), ast.unparse(ast.fix_missing_locations(copy.deepcopy(change.new)))
    before = ast.unparse(context)
    change.place.put(change.new)
    after = ast.unparse(ast.fix_missing_locations(copy.deepcopy(context)))
    change.place.put(change.old)
    return before, after


def _below(node: ast.AST, place: _Place, scope: _Scope) -> Iterator[_Change]:
    """Changes to a node, then to its children, in source order."""
    if isinstance(node, ast.Assert) or _is_left_alone(node):
        return
    for new in _alternatives(node, place, scope):
        yield _Change(place, node, new, scope.function)
    if (
        isinstance(node, ast.If)
        and len(node.body) == 1
        and isinstance(node.body[0], _LEAVES)
        and not node.orelse
    ):
        yield _Change(_Place(node, "test"), node.test, ast.Constant(False), scope.function, is_guard=True)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _parts(node.args, ("defaults", "kw_defaults"), scope)
        returns = node.returns
        is_bool = isinstance(returns, ast.Name) and returns.id == "bool"
        yield from _parts(node, ("body",), _Scope(_inside(scope, node.name), is_bool))
        return
    if isinstance(node, ast.ClassDef):
        yield from _parts(node, ("body",), _Scope(_inside(scope, node.name)))
        return
    fields = tuple(name for name in node._fields if name not in ("annotation", "format_spec", "ctx"))
    yield from _parts(node, fields, scope)


def _inside(scope: _Scope, name: str) -> str:
    return name if scope.function == MODULE else f"{scope.function}.{name}"


def _parts(node: ast.AST, fields: tuple[str, ...], scope: _Scope) -> Iterator[_Change]:
    for name in fields:
        value: Any = getattr(node, name, None)
        if isinstance(value, ast.AST):
            yield from _below(value, _Place(node, name), scope)
        elif isinstance(value, list):
            for i, element in enumerate(value):
                if isinstance(element, ast.AST):
                    yield from _below(element, _Place(node, name, i), scope)


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in _NOT_BEHAVIOR
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _alternatives(node: ast.AST, place: _Place, scope: _Scope) -> Iterator[ast.AST]:
    """Replacements for a node."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        if scope.function != MODULE or not _is_union(node):
            yield from _arithmetic(node)
    elif isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            yield _with(node, ops=[*node.ops[:i], _COMPARISONS[type(operator)](), *node.ops[i + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Constant):
        yield from _constants(node, place)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    if scope.returns_bool and isinstance(place.parent, ast.Return) and not isinstance(node, ast.Constant):
        yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]


def _arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    texts = (ast.JoinedStr, ast.Tuple, ast.List, ast.ListComp)
    if any(isinstance(side, texts) or _is_text(side) for side in sides):
        return
    if type(node.op) in _ARITHMETIC:
        yield _with(node, op=_ARITHMETIC[type(node.op)]())


def _is_union(node: ast.AST) -> bool:
    """Whether it is a union of types, as in type aliases."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_union(node.left) and _is_union(node.right)
    return isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)) or _is_none(node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _constants(node: ast.Constant, place: _Place) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        if isinstance(place.parent, ast.keyword) and place.parent.arg == "axis":
            yield ast.Constant(0 if value else 1)
        elif value > _SMALL:
            yield from (ast.Constant(value * 2), ast.Constant(value // 2))
        else:
            yield from (ast.Constant(value + 1), *([ast.Constant(value - 1)] if value else []))
    elif isinstance(value, float):
        yield ast.Constant(value * 1.5 if value else 1.0)
    elif value in _SIDES and isinstance(value, str) and isinstance(place.parent, (ast.keyword, ast.Call)):
        yield ast.Constant(_SIDES[value])


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    """Other functions of the same arguments; the reverse order."""
    name = _called(node.func)
    if name in _FUNCTIONS and not (name == "sum" and isinstance(node.func, ast.Name) and len(node.args) > 1):
        new = _with(node, func=_renamed(node.func, _FUNCTIONS[name]))
        if name == "sum" and isinstance(node.func, ast.Name):
            new.keywords = [ast.keyword("default", ast.Constant(0))]
        if name in ("min", "max") and isinstance(node.func, ast.Name) and len(node.args) == 1:
            new.keywords = list(node.keywords)
        yield new
    is_sort = name == "sorted" or (name == "sort" and bool(node.keywords))
    if is_sort and all(keyword.arg != "reverse" for keyword in node.keywords):
        yield _with(node, keywords=[*node.keywords, ast.keyword("reverse", ast.Constant(True))])
    if name == "lexsort" and node.args and isinstance(node.args[0], ast.Tuple):
        order = ast.Tuple(list(reversed(node.args[0].elts)), ast.Load())
        yield _with(node, args=[order, *node.args[1:]])
    if (
        name == "searchsorted"
        and len(node.args) < 3
        and all(keyword.arg != "side" for keyword in node.keywords)
    ):
        yield _with(node, keywords=[*node.keywords, ast.keyword("side", ast.Constant("right"))])
    if name == "abs" and len(node.args) == 1:
        yield node.args[0]


def _called(function: ast.AST) -> str:
    """The name of the called function; for `np.maximum.at`, `maximum`."""
    if (
        isinstance(function, ast.Attribute)
        and function.attr in _OF_ARRAYS
        and isinstance(function.value, ast.Attribute)
    ):
        return function.value.attr
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _renamed(function: ast.expr, name: str) -> ast.expr:
    if isinstance(function, ast.Name):
        return ast.Name(name, ast.Load())
    if isinstance(function, ast.Attribute) and function.attr in _OF_ARRAYS:
        return _with(function, value=_with(function.value, attr=name))
    return _with(function, attr=name)


def _with(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields. Children are shared."""
    return type(node)(**{**{name: getattr(node, name, None) for name in node._fields}, **fields})
