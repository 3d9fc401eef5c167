"""docs/api/command.md from what `locant --help` says."""

import re

OPTION = re.compile(r"^  (\S.*?)(?:\s{2,}(\S.*))?$")
ABOUT = re.compile(r"^\s{20,}(\S.*)$")


def escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def rows_of(text, title):
    """(option, what it does) of a section of the help."""
    section = re.search(rf"^{title}:\n((?:  .*\n|\n(?=  ))*)", text, re.MULTILINE)
    rows = []
    for line in section[1].splitlines() if section else []:
        if about := ABOUT.match(line):
            name, before = rows[-1]
            rows[-1] = (name, f"{before} {about[1]}".strip())
        elif option := OPTION.match(line):
            rows.append((option[1], option[2] or ""))
    return [row for row in rows if not row[0].startswith("-h,")]


def tidy(name):
    """--batch INT=16 as CLI11 writes it, without types that its words tell as well."""
    name = re.sub(r"\{(?:true|false)\}| (?:Needs|Excludes): \S+| REQUIRED|=\[\]| \.\.\.", "", name)
    name = re.sub(r":(?:INT|UINT|FLOAT) in \[[^]]*\]", "", name)
    if not name.startswith("-"):
        return name.split()[0]
    return re.sub(r"(?:TEXT):\{([^}]*)\}", r"\1", re.sub(r"TEXT(?!:)", "…", name))


def subcommand(name, text):
    about = text.split("\nUsage:")[0].strip()
    usage = re.search(r"Usage: (.*)", text)[1]
    lines = [f"## locant {name}", "", f"{' '.join(about.split())}.".replace("..", "."), "", f"`{usage}`", ""]
    rows = rows_of(text, "Positionals") + rows_of(text, "Options")
    if rows:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{tidy(option)}` | {escaped(what)} |" for option, what in rows]
    return "\n".join(lines)


def command_page(run):
    """The whole page; run(*arguments) gives what the command prints."""
    top = run("--help")
    parts = ["# The command", "`./run locant …`, `python -m locant …`, or `locant …` where pip installed it. "
             + re.search(r"Exit code: .*", top)[0]]  # fmt: skip
    for name, _ in rows_of(top, "Subcommands"):
        parts.append(subcommand(name, run(name, "--help")))
    return "\n\n".join(parts) + "\n"
