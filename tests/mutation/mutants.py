"""Small faults for a module: each mutant is the whole source with one expression or statement changed.

Comparisons (every neighbour and the negation), and/or, not, arithmetic, min/max, conditions negated, numbers one off,
truth values flipped, another cause, grade or mode, statements dropped, results forgotten. Left alone is what no test
should depend on, or what decides nothing: docstrings and message texts, annotations, decorators (``frozen``,
``slots``), ``strict`` of ``zip``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
_MEMBERS = {  # another member of the enum: the first of these that it is not
    "Action": ("STOP", "MOVE"),
    "Cause": ("MISS", "NO_ECHO"),
    "Clear": ("CONDITION", "ON_TIME"),
    "Grade": ("COMFORTABLE", "EMERGENCY"),
    "Mode": ("INHIBITED", "ARMED"),
    "Source": ("SAFE", "MODEL"),
    "ThermalLevel": ("NOMINAL", "HOT"),
}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """The whole module as ``source``. ``line`` is the original's; ``before`` is what is different in ``after``.

    Both are one statement, as ``ast.unparse`` writes it; they name a mutant whatever moves around it.
    """

    line: int
    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, from top to bottom."""
    tree = ast.parse(source)
    original = ast.unparse(tree).splitlines()
    for parent, name, index, node in list(_places(tree)):
        for changed in _alternatives(node):
            _put(parent, name, index, changed)
            text = ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, name, index, node)
            pairs = zip(original, text.splitlines(), strict=False)
            before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
            if before != after:  # else it returned nothing anyhow
                line = getattr(node, "lineno", 0)
                yield Mutant(line=line, before=before.strip(), after=after.strip(), source=text)


def _places(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Where each node hangs: its parent, the field, and the place in it when that is a list."""
    for name, value in ast.iter_fields(parent):
        if name in ("annotation", "returns", "decorator_list") or isinstance(value, ast.JoinedStr):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.JoinedStr) or not isinstance(node, ast.AST):
                continue
            if isinstance(node, ast.keyword) and node.arg == "strict":
                continue
            yield parent, name, index, node
            yield from _places(node)


def _put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, op in enumerate(ops):
                for other in _COMPARISONS[type(op)]:
                    yield ast.Compare(left, [*ops[:index], other(), *ops[index + 1 :]], comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Attribute(value=ast.Name(id=kind), attr=name) if kind in _MEMBERS:
            other = next(member for member in _MEMBERS[kind] if member != name)
            yield ast.Attribute(ast.Name(kind, ast.Load()), other, ast.Load())
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _OPPOSITE:
            yield ast.Call(ast.Name(_OPPOSITE[name], ast.Load()), args, keywords)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.If(test=test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Assign() | ast.AugAssign() | ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue():
            yield ast.Pass()
        case ast.Return(value=ast.AST()):
            yield ast.Return(ast.Constant(None))
