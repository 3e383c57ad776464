"""What is printed is what was meant, brackets included."""

from __future__ import annotations

import pytest
from rich.table import Table

from edgeguard.cli.console import Console


def test_brackets_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(box=None)
    table.add_column("[[field]]")
    table.add_row("robot[1].toml")
    console = Console()
    console.print("filled up where [model] shapes says so")
    console.print(table)
    console.print_headed("ok", "robot[bold].toml", style="green")
    said = capsys.readouterr().out
    assert "where [model] shapes says so\n" in said
    assert "[[field]]" in said
    assert "robot[1].toml" in said
    assert "ok  robot[bold].toml\n" in said
