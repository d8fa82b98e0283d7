"""The gRPC API, from the proto files and their comments."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import grpc_tools  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from grpc_tools import protoc

ROOT: Final = Path(__file__).parents[2]
PROTO: Final = ROOT / "proto"
#: Numbers of fields in descriptors, of which the paths of comments are made.
_MESSAGE, _ENUM, _SERVICE, _METHOD, _FIELD, _VALUE, _NESTED, _NESTED_ENUM = 4, 5, 6, 2, 2, 2, 3, 4
Comments = dict[tuple[int, ...], str]


def page() -> str:
    """Services first, then messages and enums, file by file."""
    return "\n".join(_lines()) + "\n"


def read_files() -> list[FileDescriptorProto]:
    """The contract, with its comments."""
    names = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("v1/*.proto"))
    common = str(Path(grpc_tools.__file__).parent / "_proto")
    with tempfile.NamedTemporaryFile(suffix=".pb") as out:
        code = protoc.main(["", f"-I{PROTO}", f"-I{common}", "--include_source_info", f"-o{out.name}", *names])
        if code:
            raise ValueError(f"protoc failed with {code}")
        return list(FileDescriptorSet.FromString(Path(out.name).read_bytes()).file)


def _lines() -> Iterator[str]:
    yield "# gRPC API"
    yield "\nMade from the proto files, which are the contract.\n"
    files = read_files()
    for file in files:
        said = comments(file)
        for number, service in enumerate(file.service):
            yield f"## {service.name}\n"
            yield f"`{file.package}.{service.name}`, in `{file.name}`. {said.get((_SERVICE, number), '')}\n"
            for index, method in enumerate(service.method):
                asked = _kind(method.input_type, method.client_streaming)
                told = _kind(method.output_type, method.server_streaming)
                about = said.get((_SERVICE, number, _METHOD, index), "")
                yield f"**{method.name}**: {asked} → {told}<br>{about}\n"
    for file in files:
        said = comments(file)
        if file.message_type or file.enum_type:
            yield f"## {file.name}\n"
        for number, message in enumerate(file.message_type):
            yield from _message(message, said, (_MESSAGE, number), "")
        for number, enum in enumerate(file.enum_type):
            yield from _enum(enum, said, (_ENUM, number), "")


def comments(file: FileDescriptorProto) -> Comments:
    """What stands above or beside each element, by its path."""
    found: Comments = {}
    for place in file.source_code_info.location:
        text = " ".join((place.leading_comments or place.trailing_comments).split())
        if text:
            found[tuple(place.path)] = text
    return found


def _message(message: DescriptorProto, said: Comments, path: tuple[int, ...], outer: str) -> Iterator[str]:
    name = f"{outer}{message.name}"
    if not message.options.map_entry:
        yield f"### {name}\n"
        yield f"{said.get(path, '')}\n"
        if message.field:
            yield "| number | field | type | |"
            yield "|---:|---|---|---|"
        entries = {each.name for each in message.nested_type if each.options.map_entry}
        for index, field in enumerate(message.field):
            about = _cell(said.get((*path, _FIELD, index), ""))
            yield f"| {field.number} | `{field.name}` | {_type(field, entries, message.nested_type)} | {about} |"
        yield ""
    for index, nested in enumerate(message.nested_type):
        yield from _message(nested, said, (*path, _NESTED, index), f"{name}.")
    for index, enum in enumerate(message.enum_type):
        yield from _enum(enum, said, (*path, _NESTED_ENUM, index), f"{name}.")


def _enum(enum: EnumDescriptorProto, said: Comments, path: tuple[int, ...], outer: str) -> Iterator[str]:
    yield f"### {outer}{enum.name}\n"
    yield f"{said.get(path, '')}\n"
    yield "| number | value | |"
    yield "|---:|---|---|"
    for index, value in enumerate(enum.value):
        yield f"| {value.number} | `{value.name}` | {_cell(said.get((*path, _VALUE, index), ''))} |"
    yield ""


def _type(field: FieldDescriptorProto, entries: set[str], nested: Sequence[DescriptorProto]) -> str:
    short = field.type_name.rsplit(".", 1)[-1]
    if short in entries:
        key, value = next(each for each in nested if each.name == short).field
        return f"map of {_plain(key)} to {_plain(value)}"
    many = field.label == FieldDescriptorProto.LABEL_REPEATED
    how = "repeated " if many else "optional " if field.proto3_optional else ""
    return f"{how}{_plain(field)}"


def _plain(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _named(field.type_name)
    return f"`{FieldDescriptorProto.Type.Name(field.type).removeprefix('TYPE_').lower()}`"


def _kind(name: str, stream: bool) -> str:
    return f"stream of {_named(name)}" if stream else _named(name)


def _named(name: str) -> str:
    """A type as a link, if it is ours."""
    if not name.startswith(".fila."):
        return f"`{name.lstrip('.')}`"
    short = name.split(".v1.", 1)[-1]
    return f"[`{short}`](#{short.lower().replace('.', '')})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
