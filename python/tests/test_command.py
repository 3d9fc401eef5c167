"""python -m locant is the command line."""

import inspect
import json
import os
import subprocess
import sys

import locant


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "locant", *arguments],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip


def test_list_tells_what_the_classes_are():
    run = command("list", "--json")
    assert run.returncode == 0 and not run.stderr
    listed = {entry["name"]: entry for entry in json.loads(run.stdout)}
    assert list(listed) == list(locant.encodings())
    for name, cls in locant.encodings().items():
        arguments = inspect.signature(cls).parameters
        for field in listed[name]["fields"]:
            assert arguments[field["name"]].default == field["default"]
        assert listed[name]["class"] == cls.__name__


def test_isa_follows_the_environment():
    assert "* scalar" in command("isa", LOCANT_ISA="scalar").stdout


def test_check_and_bench_run():
    run = command("check", "shaw", "--case", "3")
    assert run.returncode == 0 and "shaw" in run.stdout and "FAILED" not in run.stdout
    run = command("bench", "shaw", "--lengths", "32", "--repeat", "1", "--min-seconds", "0")
    assert run.returncode == 0 and "shaw" in run.stdout


def test_show_draws():
    run = command("show", "t5")
    assert run.returncode == 0 and run.stdout.startswith("<svg") and ">bucket by offset<" in run.stdout


def test_mistakes_are_told_with_exit_code_2():
    for arguments in (["lisst"], ["check", "shaww"], []):
        run = command(*arguments)
        assert run.returncode == 2 and "locant" in run.stderr


def test_version():
    assert command("--version").stdout.strip() == f"locant {locant.__version__}"
