"""Text → plain values: TOML, or an INI file as people write them.

When TOML refuses the text, bare values are quoted line by line and it is read again, so line
numbers stay right. There is no other parser: both dialects end in tomli.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import tomli

from webmon.errors import ConfigError

_HEADER = re.compile(r"^\s*\[(?!\[)(.*?)\]\s*(?:[#;].*)?$")
_KEY = re.compile(r"^\s*(?P<key>[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*=(?P<value>.*)$")
_HOST_HEADER = re.compile(r"^\s*\[\s*host\s*\.\s*(?P<name>.+?)\s*\]\s*(?:[#;].*)?$")
_OTHER_NAME = re.compile(r"^\s*(\[\[)?\s*([A-Za-z0-9_-]+)\s*[.\]]")  # [[name]], name.name = value
_COMMENT = re.compile(r"^\s*[;#]")
_INLINE_COMMENT = re.compile(r"\s+[#;].*$")

# TOMLDecodeError is a ValueError; beside it, tomli lets through what Python says of a number with
# thousands of digits, and of brackets or dotted keys that are nested hundreds deep.
_REFUSALS = (ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration file as plain values, and the line that each key stands on."""

    name: str
    sections: dict[str, Any]
    lines: dict[tuple[str, ...], int] = field(default_factory=dict)

    def where(self, *path: str) -> str:
        """Return `config.ini:12` for a key, or just the file when the line is not known."""
        for length in range(len(path), 0, -1):
            if (line := self.lines.get(path[:length])) is not None:
                return f"{self.name}:{line}"
        return self.name


def read(text: str, name: str) -> Document:
    """Read a configuration file's text; `name` is how errors call it."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        sections = tomli.loads(text)
    except _REFUSALS:
        text = _quote_bare_values(text)
        try:
            sections = tomli.loads(text)
        except _REFUSALS as error:
            raise _refused(error, text, name) from None
    return Document(name, _flat_hosts(sections), _lines(text))


def _refused(error: Exception, text: str, name: str) -> ConfigError:
    remedy = "Each line is [section], key = value or a # comment; see config.example.ini"
    if not isinstance(error, tomli.TOMLDecodeError):
        return ConfigError(str(error), remedy, where=name)
    content = text.split("\n")[error.lineno - 1].strip()
    shown = f" in {content[:60]!r}" if content else ""
    return ConfigError(f"{error.msg}{shown}", remedy, where=f"{name}:{error.lineno}")


def _quote_bare_values(text: str) -> str:
    lines = text.split("\n")
    out: list[str] = []
    while len(out) < len(lines):
        line = lines[len(out)]
        if _COMMENT.match(line):
            out.append("#" + line.lstrip()[1:])
        elif header := _HEADER.match(line):
            host = None if _is_toml(line) else _HOST_HEADER.match(line)
            out.append(f"[host.{_quoted(host['name'].strip(chr(34)))}]" if host else f"[{header[1]}]")
        elif match := _KEY.match(line):
            out.extend(_quoted_key(match, lines[len(out) :]))
        else:
            out.append(line)
    return "\n".join(out)


def _quoted_key(match: re.Match[str], rest: list[str]) -> list[str]:
    """Return the lines of one key, its value quoted if TOML would refuse it as it is."""
    value = match["value"].strip()
    if _is_toml(f"x = {value}"):
        return rest[:1]
    if value.startswith(("[", '"""', "'''")):
        for count in range(2, len(rest) + 1):
            if _starts_something(rest[count - 1]):
                break
            # Only a line that may be the last one is worth a try: long lists have many lines.
            if rest[count - 1].rstrip().endswith(("]", '"""', "'''")) or "#" in rest[count - 1]:
                joined = "\n".join([f"x = {value}", *rest[1:count]])
                if _is_toml(joined):
                    return rest[:count]
    if value[:1] in ('"', "'"):
        quotes = value.count(value[0])
        if quotes % 2 or (quotes == 2 and value.endswith(value[0])):
            return rest[:1]  # not closed, or with a backslash that means nothing: TOML says so
    continued = _continuation(value, rest)
    bare = [_INLINE_COMMENT.sub("", part).strip() for part in [match["value"], *continued]]
    joined = ", ".join(part.rstrip(",") for part in bare if part.strip(",")) if continued else bare[0]
    known = joined if _is_toml(f"x = {joined}") else _quoted(joined)
    return [f"{match['key']} = {known}"] + [""] * len(continued)


def _continuation(value: str, rest: list[str]) -> list[str]:
    """Return the further lines of a bare value: indented ones, or up to the closing bracket."""
    taken: list[str] = []
    is_list = value.startswith("[")
    depth = value.count("[") - value.count("]")
    for line in rest[1:]:
        is_open = is_list and depth > 0
        is_indented = line[:1] in (" ", "\t") and line.strip()
        is_comment = bool(_COMMENT.match(line))
        if _starts_something(line) or not (is_open or is_indented or is_comment):
            break
        taken.append("" if is_comment else line)
        depth += taken[-1].count("[") - taken[-1].count("]")
    return taken


def _starts_something(line: str) -> bool:
    return bool(_KEY.match(line)) or bool(_HEADER.match(line) and line[:1] == "[")


def _is_toml(text: str) -> bool:
    try:
        tomli.loads(text)
    except _REFUSALS:
        return False
    return True


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _flat_hosts(sections: dict[str, Any]) -> dict[str, Any]:
    """Turn [host.gpu01.lab], which TOML nests, into the host `gpu01.lab`."""
    hosts = sections.get("host")
    if not isinstance(hosts, dict):
        return sections
    flat: dict[str, Any] = {}
    pending = [(str(name), value) for name, value in hosts.items()]
    while pending:
        name, value = pending.pop(0)
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            pending += [(f"{name}.{k}", v) for k, v in value.items() if isinstance(v, dict)]
            value = {k: v for k, v in value.items() if not isinstance(v, dict)}
            if not value:
                continue
        flat[name] = value
    return {**sections, "host": flat}


def _lines(text: str) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if host := _HOST_HEADER.match(line):
            section = ("host", _unquoted(host["name"]))
        elif header := _HEADER.match(line):
            section = (_unquoted(header[1].strip()),)
        elif key := _KEY.match(line):
            lines.setdefault((*section, _unquoted(key["key"])), number)
            continue
        elif other := _OTHER_NAME.match(line):
            lines.setdefault((other[2],) if other[1] else (*section, other[2]), number)
            continue
        else:
            continue
        lines.setdefault(section, number)
        lines.setdefault((section[0].partition(".")[0],), number)
    return lines


def _unquoted(text: str) -> str:
    is_quoted = text[:1] in ('"', "'") and _is_toml(f"x = {text}")
    return str(tomli.loads(f"x = {text}")["x"]) if is_quoted else text
