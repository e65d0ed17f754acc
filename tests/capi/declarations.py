"""The names that a plain C header declares. The compiler, not this reader, says what they mean (see abi.py)."""
import re
from dataclasses import dataclass, field

DEPRECATED = "@"  # stands for the attribute


@dataclass
class Names:
    enumerators: list = field(default_factory=list)
    enums: list = field(default_factory=list)
    structs: dict = field(default_factory=dict)  # tag or type name -> names of fields
    types: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    deprecated: list = field(default_factory=list)


def split_declarations(text):
    """Pieces of text that end with a semicolon outside of braces."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == ";" and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        raise ValueError(f"not understood: {text[start:].strip()[:200]}")


def last_word(text):
    return re.findall(r"\w+", text)[-1]


def read_enum(body, names):
    for item in filter(None, (part.strip() for part in body.split(","))):
        name = re.match(r"\w+", item)[0]
        names.enumerators.append(name)
        if DEPRECATED in item:
            names.deprecated.append(name)


def read_declaration(text, names):
    """Adds one declaration; returns the name that it is about."""
    body = re.fullmatch(r"typedef (enum|struct)\s*(\w*)\s*\{(.*)\}\s*(\w+)", text, re.S)
    if body and body[1] == "enum":
        read_enum(body[3], names)
        names.enums.append(body[4])
        return body[4]
    if body:
        fields = [last_word(part.split("[")[0]) for part in body[3].split(";") if part.strip()]
        names.structs[body[2] or body[4]] = fields
        names.types.append(body[4])
        return body[4]
    if text.startswith("typedef"):
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", text)
        names.types.append(function[1] if function else last_word(text))
        return names.types[-1]
    if re.fullmatch(r"struct \w+", text):
        return last_word(text)
    function = re.fullmatch(r"[\w\s*]*?(\w+)\s*\(.*\)", text, re.S)
    if not function:
        raise ValueError(f"not understood: {text[:200]}")
    names.functions.append(function[1])
    return function[1]


def refuse_unknown(text, names):
    """No name is lost: whatever looks like one of cuDNN's must have been read."""
    known = {*names.enumerators, *names.enums, *names.structs, *names.types, *names.functions}
    known.update(field for fields in names.structs.values() for field in fields)
    unknown = sorted(set(re.findall(r"(?<!struct )\b(?:cudnn|CUDNN)\w*", text)) - known)
    if unknown:
        raise ValueError(f"not understood: {', '.join(unknown)}")


def read(text):
    """All names in preprocessed text."""
    text = re.sub(r"__attribute__\s*\(\(\s*deprecated\s*\)\)", DEPRECATED, text)
    text, opened = re.subn(r'extern "C" \{', "", text)
    text, closed = re.subn(r"^\s*\}\s*$", "", text, flags=re.M)
    if opened != closed:
        raise ValueError(f"{opened} blocks of extern \"C\" opened, {closed} closed")
    names = Names()
    for declaration in split_declarations(text):
        before, body, after = re.fullmatch(r"([^{]*)(\{.*\})?([^{}]*)", declaration, re.S).groups("")
        plain = before.replace(DEPRECATED, "") + body + after.replace(DEPRECATED, "")
        name = read_declaration(plain.strip(), names)
        if DEPRECATED in before + after:
            names.deprecated.append(name)
    refuse_unknown(text, names)
    return names
