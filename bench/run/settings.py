"""What holds for all runs of a user or of a project: options (`Option.lasting`) that need not be typed.

A value is looked for in this order, and the first that is found holds:

1. the command line;
2. an environment variable, KERNELSCOPE_BUDGET for --budget;
3. the project's file: `kernelscope.toml`, or the table [tool.kernelscope] of `pyproject.toml`, in the current
   folder or in the nearest folder above that has one;
4. the user's file: `kernelscope.toml` in the user's configuration folder, or what KERNELSCOPE_CONFIG names.

A project's file may come from anybody. What has a program or a machine of somebody's run (`Option.runs`) is
taken from it only if the user has agreed to the file as it is (`trust`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from bench.results.store import RUNS
from bench.results.store import write_atomically as store_file
from bench.run import options
from bench.words.called import CALLED
from bench.words.option import Number, Option, absolute, one_of
from kernels.cache import Store
from kernels.errors import InputError, system_words

NAME, PROJECT = "kernelscope.toml", "pyproject.toml"
_OUR_TABLE = re.compile(r"^\s*\[tool\.kernelscope[\].]", re.MULTILINE)
_TRUSTED = Store("settings", 1, "which files of settings are trusted", most=1000)
# By name; where two commands have an option of one name, either reads what stands in a file.
LASTING = {option.name: option for listed in options.TABLE.values() for option in listed if option.lasting}


@dataclass(frozen=True)
class Setting:
    """A value as it was written. texts: as words of a command line; where: it was found, as a user looks for
    it; folder: from which paths in it begin; trusted: it is not of a project's file that the user has not
    agreed to."""

    texts: tuple[str, ...]
    where: str
    folder: Path
    trusted: bool = True


def known() -> dict[str, Setting]:
    """Every setting that holds, by the option's name. Raises InputError, which names file and line."""
    found: dict[str, Setting] = {}
    user, project = user_file(), project_file()
    if user.is_file():
        found |= _of_file(user)
    if project is not None:
        found |= _of_file(project, _TRUSTED.read("trusted", _key(project), bool) is True)
    for name, option in LASTING.items():
        variable = f"KERNELSCOPE_{name.upper()}"
        if text := os.environ.get(variable, ""):
            texts = text.split(os.pathsep) if _is_path(option) else [text]
            found[name] = Setting(tuple(texts), f"the variable {variable}", Path.cwd())
    for name, setting in found.items():
        read(LASTING[name], setting)
    return found


def values(wanted: Iterable[Option]) -> dict[str, Any]:
    """The values that hold for these options, by their names. Raises InputError as `known` does, and for a
    value that would run something and that the user has not agreed to."""
    asked = {option.name: option for option in wanted if option.lasting}
    found = known() if asked else {}
    for name in asked.keys() & found.keys():
        if asked[name].runs and not found[name].trusted:
            raise InputError(
                f"{found[name].where}: {name} may have something run that is not yours; read the file, then "
                f"`{CALLED} config --trust` takes it as it is"
            )
    return {name: read(asked[name], found[name]) for name in asked if name in found}


def fields(wanted: Iterable[Option]) -> dict[str, Any]:
    """As `values`, of those options that are fields of a job, by field."""
    wanted = [option for option in wanted if option.fields]
    found = values(wanted)
    return {
        field: value
        for option in wanted
        if option.name in found
        for field, value in option.as_fields(found[option.name]).items()
    }


def read(option: Option, setting: Setting) -> Any:
    """A setting as the option's value. Raises InputError, which says where it stands."""
    called = f"{setting.where}: {option.name}"
    texts = setting.texts
    if len(texts) > 1 and not option.value.repeated:
        raise InputError(f"{called} takes one value, and has {len(texts)}")
    if "" in texts:
        raise InputError(f"{called} is empty; give a value, or leave it away")
    if _is_path(option):
        texts = tuple(str(setting.folder / Path(text).expanduser()) for text in texts)
    value = option.value.read(texts, called)
    try:
        option.value.check(value, called)
    except InputError as error:
        told = str(error)
        raise InputError(told if told.startswith(called) else f"{called}: {told}") from error
    return value


def store(name: str, texts: Sequence[str]) -> Path:
    """Put a setting into the user's file, in place of what it has there; () takes it out. All else in the
    file stays as it is, comments too. Returns the file.

    Raises InputError, and changes nothing, for a value with which nothing can be run, for a file that is
    broken, and where the setting is written in a way that only a person can change."""
    import tomllib

    file = user_file()
    option = LASTING[name]
    if texts:
        read(option, Setting(tuple(texts), "the preferences", file.parent))
    before = _text(file) if file.is_file() else ""
    kept = _of_file(file) if before else {}
    wanted = {key: setting.texts for key, setting in kept.items() if key != name}
    lines = before.splitlines()
    heads = [at for at, line in enumerate(lines) if line.lstrip().startswith("[")]
    own = [at for at in range(heads[0] if heads else len(lines)) if _begins(name, lines[at])]
    written = [f"{name} = {_toml(option, texts)}"] if texts else []
    if own:
        lines[own[0] : own[0] + 1] = written
    else:
        at = heads[0] if heads else len(lines)
        lines[at:at] = written
    after = "".join(f"{line}\n" for line in lines)
    if texts:
        wanted[name] = tuple(texts)
    try:
        table = tomllib.loads(after)
        same = {key: _texts(value, key) for key, value in table.items()} == wanted
    except (tomllib.TOMLDecodeError, InputError):
        same = False
    if not same:
        raise InputError(f"{file} has {name} in a way that the window cannot change; change it there")
    store_file(file.resolve(), after.encode())  # where it is a link, it stays one
    return file


def _begins(name: str, line: str) -> bool:
    """Whether a line of TOML gives this key a value."""
    return re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=""", line) is not None


def _toml(option: Option, texts: Sequence[str]) -> str:
    """Texts as TOML: a number where the option takes one, a list where it takes several."""
    parts = [
        text if isinstance(option.value, Number) else json.dumps(text, ensure_ascii=False) for text in texts
    ]
    return f"[{', '.join(parts)}]" if option.value.repeated else parts[0]


def runs_folder() -> Path:
    """The folder of the user's runs: what the setting `runs` says, else `runs` in the current folder. Raises
    InputError as `values` does."""
    return Path(values([LASTING["runs"]]).get("runs", RUNS))


def trust() -> Path:
    """Agree to the project's file as it is now. Returns it; raises InputError where there is none."""
    project = project_file()
    if project is None:
        raise InputError(f"neither {NAME} nor [tool.kernelscope] in {PROJECT} is in this folder or above it")
    _TRUSTED.write("trusted", _key(project), True)
    return project


def user_file() -> Path:
    """Where the user's own settings stand: KERNELSCOPE_CONFIG, else in the system's place for them. It need
    not exist."""
    if named := os.environ.get("KERNELSCOPE_CONFIG", ""):
        return Path(named).expanduser()
    return platformdirs.user_config_path("kernelscope", appauthor=False) / NAME


def project_file() -> Path | None:
    """The file with this project's settings."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if os.path.isfile(folder / NAME):  # False, and no error, for what may not be looked at
            return folder / NAME
        with contextlib.suppress(OSError):  # what cannot be read need not be ours
            if _OUR_TABLE.search((folder / PROJECT).read_text(encoding="utf-8", errors="replace")):
                return folder / PROJECT
    return None


def _is_path(option: Option) -> bool:
    return option.value.keep is absolute


def _key(file: Path) -> dict[str, str]:
    return {"file": str(file), "sha256": hashlib.sha256(_text(file).encode()).hexdigest()}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        words = system_words(error) if isinstance(error, OSError) else "it is not text in UTF-8"
        raise InputError(f"{file} cannot be read: {words}") from error


def _of_file(file: Path, trusted: bool = True) -> dict[str, Setting]:
    import tomllib

    text = _text(file)
    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is no TOML: {error}") from error
    heading = ""
    if file.name == PROJECT:
        heading, table = "tool.kernelscope", table.get("tool", {}).get("kernelscope", {})
    found = {}
    for key, value in table.items():
        where = f"{file}{_line(text, heading, key)}"
        one_of(key, LASTING, f"{where}:")
        found[key] = Setting(_texts(value, f"{where}: {key}"), where, file.parent, trusted)
    return found


def _line(text: str, heading: str, key: str) -> str:
    """Where a key stands, ", line 3"; "" where it is written in another way than on a line below its
    heading."""
    at = ""
    for number, line in enumerate(text.splitlines(), 1):
        if begins := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            at = begins[1]
            if f"{at}.".startswith(f"{heading}.{key}.".lstrip(".")):
                return f", line {number}"
        elif at == heading and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
            return f", line {number}"
    return ""


def _texts(value: object, called: str) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, str | int | float):
            raise InputError(f"{called} takes a text, a number, or a list of such, and not {_kind(part)}")
    return tuple(map(str, parts))


def _kind(value: object) -> str:
    kinds: dict[type, str] = {bool: "true or false", dict: "a table", list: "a list in a list"}
    return kinds.get(type(value), "a date")
