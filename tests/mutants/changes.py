"""Every single change of a module's behaviour that a mutation run can try.

A change replaces a piece of the module's text, so that what is printed is the line as somebody would have written it.
What only people read is left alone: docstrings, annotations, and the words of messages.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROGRAM = ("components", "stacks", "ask", "cli", "drift", "member", "review", "runner")
"""The folders whose modules are changed."""
SILENT_CALLS = frozenset({"dataclass", "ConfigDict", "TypeVar", "reject", "Refusal"})
"""Calls whose arguments are not behaviour, or are texts for people."""
TOLD = "ConfigError"
"""The call whose arguments after the first are texts for people."""
SILENT_KEYWORDS = frozenset({"message", "expected", "hint", "description", "help", "examples"})
OPPOSITES = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in", "is": "is not",
    "is not": "is", "and": "or", "or": "and", "+": "-", "-": "+", "*": "//", "//": "*", "/": "*", "|": "&", "&": "|",
    "%": "*", "**": "*", "<<": ">>", ">>": "<<",
}  # fmt: skip
SYMBOLS: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.And: "and", ast.Or: "or", ast.Add: "+", ast.Sub: "-",
    ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%", ast.BitOr: "|", ast.BitAnd: "&", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_WORD = re.compile(r"[A-Za-z0-9_./:@%=$*-]*[A-Za-z0-9][A-Za-z0-9_./:@%=$*-]*")
_HOLE = re.compile(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_PROSE = re.compile(r"(?:\b[A-Za-z',;:]+ ){3,}[A-Za-z]+\b")
"""Four words in a row: a sentence for people, not a command."""
_TOKEN = re.compile(r"mlbatch:[a-z]+:[A-Z]\w+")


@dataclass(frozen=True, order=True)
class Change:
    """One change. line: where it begins, from 1. start, end: what it replaces, in bytes of the module. kind: of change.

    function: the qualified name of the function that it is in; empty for what runs when the module is imported.
    """

    file: str
    line: int
    start: int
    end: int
    text: str
    kind: str
    function: str = ""

    def applied(self, source: bytes) -> bytes:
        """Return the changed module."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def changes(file: str, source: bytes) -> list[Change]:
    """Return the changes of a module; some leave no module, or the same one (see `changes_meaning`)."""
    found = {(change.start, change.end, change.text): change for change in _Finder(file, source).found()}
    return sorted(found.values())


def changes_meaning(change: Change, source: bytes) -> bool:
    """Whether a changed module can be read, and says something else."""
    try:
        return ast.dump(ast.parse(change.applied(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self._file, self._source = file, source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._functions: list[tuple[int, int, str]] = []
        self._words_of_people: list[tuple[int, int]] = []

    def found(self) -> Iterator[Change]:
        nodes = list(self._visit(ast.parse(self._source), ""))
        for kind, start, end, text in nodes:
            yield self._change(kind, start, end, text)
        yield from self._strings()

    def _change(self, kind: str, start: int, end: int, text: str) -> Change:
        line = next(number for number in range(len(self._lines)) if self._lines[number] > start)
        inside = [function for function in self._functions if function[0] <= start < function[1]]
        name = max(inside)[2] if inside else ""
        return Change(self._file, line, start, end, text, kind, name)

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _visit(self, node: ast.AST, scope: str) -> Iterator[tuple[str, int, int, str]]:
        """Yield kind, start, end and new text of the changes under a node, and note what they lie in."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{scope}{node.name}"
            if not isinstance(node, ast.ClassDef):
                # Decorators and defaults run where the function is made, and not in it.
                self._functions.append((self._span(node.body[0])[0], self._span(node)[1], name))
            scope = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
        if self._is_silent(node):
            self._words_of_people.append(self._span(node))
            if isinstance(node, ast.Raise):
                yield from self._own(node)
            return
        yield from self._own(node)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_comment"):
                if isinstance(value, ast.expr):
                    self._words_of_people.append(self._span(value))
                continue
            for position, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.expr) and position and self._is_told(node, field):
                    self._words_of_people.append(self._span(child))
                elif isinstance(child, ast.AST):
                    yield from self._visit(child, scope)

    def _is_told(self, node: ast.AST, field: str) -> bool:
        return field == "args" and isinstance(node, ast.Call) and ast.unparse(node.func) == TOLD

    def _is_silent(self, node: ast.AST) -> bool:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Raise():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in SILENT_CALLS
            case ast.keyword(arg=name):
                return name in SILENT_KEYWORDS
            case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")) | ast.Assign(targets=[ast.Name(id="__all__")]):
                return True
        return False

    def _own(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.Constant(value=bool() as value):
                yield ("boolean", *self._span(node), str(not value))
            case ast.Constant(value=int() | float() as value):
                for other in (value + 1, value - 1):
                    yield ("number", *self._span(node), repr(other))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from self._operator("comparison", left, right, operator)
            case ast.BoolOp(op=operator, values=[first, second, *_]):
                yield from self._operator("logic", first, second, operator)
            case ast.BinOp(left=left, op=operator, right=right):
                yield from self._operator("arithmetic", left, right, operator)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield ("logic", *self._span(node), f"({self._text(operand)})")
            case ast.Name(id=name, ctx=ast.Load()) if name in FUNCTIONS:
                yield ("logic", *self._span(node), FUNCTIONS[name])
            case ast.IfExp(body=body, orelse=orelse):
                for arm in (body, orelse):
                    yield ("branch", *self._span(node), f"({self._text(arm)})")
            case ast.If(test=test) | ast.comprehension(ifs=[test, *_]):
                yield ("branch", *self._span(test), f"(not ({self._text(test)}))")
                yield ("branch", *self._span(test), "True")
            case ast.List(elts=items, ctx=ast.Load()) | ast.Set(elts=items):
                yield from self._without_each("list item", items)
            case ast.Tuple(elts=items, ctx=ast.Load()) if self._is_enumeration(items):
                yield from self._without_each("list item", items)
            case ast.Dict(keys=keys, values=values) if values:
                entries = [value if key is None else key for key, value in zip(keys, values, strict=True)]
                starts = [
                    self._span(entry)[0] - (len("**") if key is None else 0)
                    for key, entry in zip(keys, entries, strict=True)
                ]
                yield from self._cut("dictionary entry", starts, [self._span(value)[1] for value in values])
                yield ("emptied", *self._span(node), "{}")
            case ast.Call(args=args, keywords=keywords):
                yield from self._keywords(args, keywords)
            case (
                ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom() | ast.Await()) | ast.AugAssign() | ast.Raise()
            ):
                yield ("statement", *self._span(node), "pass")
            case ast.Return(value=ast.Constant(value=None | False)):
                return
            case ast.Return(value=value) if value is not None:
                yield ("return", *self._span(node), "return None")
            case ast.Continue() | ast.Break():
                yield ("statement", *self._span(node), "pass")

    def _operator(
        self, kind: str, left: ast.expr, right: ast.expr, operator: ast.AST
    ) -> Iterator[tuple[str, int, int, str]]:
        symbol = SYMBOLS.get(type(operator))
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._source[start:end].decode()
        if symbol is None or "#" in between:
            return
        words = r"\s+".join(map(re.escape, symbol.split()))
        pattern = rf"\b{words}\b" if symbol[0].isalpha() else words
        yield (kind, start, end, re.sub(pattern, OPPOSITES[symbol], between, count=1))

    def _is_enumeration(self, items: Sequence[ast.expr]) -> bool:
        """Whether a tuple is an enumeration, so that its readers also accept one item less."""
        return len(items) > 2 or (
            len(items) > 0 and all(isinstance(item, ast.Constant | ast.Starred) for item in items)
        )

    def _without_each(self, kind: str, items: Sequence[ast.expr]) -> Iterator[tuple[str, int, int, str]]:
        spans = [self._span(item) for item in items]
        yield from self._cut(kind, [start for start, _ in spans], [end for _, end in spans])

    def _keywords(
        self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Iterator[tuple[str, int, int, str]]:
        before = [self._span(arg) for arg in args]
        spans = sorted([*before, *(self._span(keyword) for keyword in keywords)])
        dropped = {self._span(keyword)[0] for keyword in keywords if keyword.arg not in SILENT_KEYWORDS}
        for change in self._cut("keyword", [start for start, _ in spans], [end for _, end in spans]):
            if self._dropped_start(change, spans) in dropped:
                yield change

    def _dropped_start(self, change: tuple[str, int, int, str], spans: Sequence[tuple[int, int]]) -> int:
        return next(start for start, end in spans if change[1] <= start and end <= change[2])

    def _cut(self, kind: str, starts: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[str, int, int, str]]:
        """Yield the removal of each piece of a sequence, with the comma behind or before it."""
        for index, start in enumerate(starts):
            if index + 1 < len(starts):
                yield (kind, start, starts[index + 1], "")
            elif index:
                yield (kind, ends[index - 1], ends[index], "")
            else:
                yield (kind, start, ends[index], "")

    def _strings(self) -> Iterator[Change]:
        for token in tokenize.tokenize(io.BytesIO(self._source).readline):
            if token.type == tokenize.STRING:
                start = self._lines[token.start[0] - 1] + len(token.line.splitlines()[0][: token.start[1]].encode())
                if not any(first <= start < last for first, last in self._words_of_people):
                    yield from self._string(token.string, start)

    def _string(self, literal: str, start: int) -> Iterator[Change]:
        opened = re.match(r"(\w*)(\"\"\"|'''|\"|')", literal)
        assert opened
        body = literal[opened.end() : -len(opened[2])]
        offset = start + len(opened[0].encode())
        holes = [hole.span() for hole in _HOLE.finditer(body)] if "f" in opened[1].lower() else []
        if not body:
            yield self._change("text", offset, offset, "x")
        words = [
            word for word in _WORD.finditer(body) if not any(a < word.end() and word.start() < b for a, b in holes)
        ]
        for word in words:
            line = body[body.rfind("\n", 0, word.start()) + 1 :].splitlines()[0]
            if _is_for_people(line):
                continue
            at = offset + len(body[: word.start()].encode())
            kind = "type token" if _TOKEN.fullmatch(body) else "text"
            yield self._change(kind, at, at + len(word[0].encode()), _other(word[0]))
            if word[0].startswith("-") and len(words) > 1:
                yield self._change("option", at, at + len(word[0].encode()), "")
        if "\n" in body:
            yield from self._lines_of(body, offset)

    def _lines_of(self, body: str, offset: int) -> Iterator[Change]:
        at = 0
        for line in body.splitlines(keepends=True):
            if line.strip() and not _is_for_people(line):
                first = offset + len(body[:at].encode())
                yield self._change("line", first, first + len(line.encode()), "")
            at += len(line)


def _is_for_people(line: str) -> bool:
    return _PROSE.search(line) is not None or (line.lstrip().startswith("#") and not line.startswith("#!"))


def _other(word: str) -> str:
    """Return another word: the next number, or an unknown word."""
    number = re.search(r"\d+$", word)
    return f"{word[: number.start()]}{int(number[0]) + 1}" if number else f"{word}x"
