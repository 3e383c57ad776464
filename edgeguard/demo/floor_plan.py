"""The rooms and the robot's path through them, in characters. Pure.

A cell is 0.125 m wide and 0.25 m high, about as a terminal's character is. The y axis points up.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgeguard.demo.world import HEIGHT_M, ROOMS, WIDTH_M, Pose, Wall

CELL_WIDTH_M, CELL_HEIGHT_M = 0.125, 0.25
COLUMNS, ROWS = round(WIDTH_M / CELL_WIDTH_M), round(HEIGHT_M / CELL_HEIGHT_M)

TRACE, BEGIN, ROBOT = "·", "○", "●"
_CORNERS = {
    (False, False, True, True): "┌",
    (False, True, True, False): "┐",
    (True, False, False, True): "└",
    (True, True, False, False): "┘",
    (False, True, True, True): "┬",
    (True, True, False, True): "┴",
}
"""By which of up, left, down and right have a wall too."""


def floor_plan(path: Sequence[tuple[float, float]], pose: Pose, *, walls: Sequence[Wall] = ROOMS) -> list[str]:
    """Lines from the top wall to the bottom one."""
    marks: dict[tuple[int, int], str] = {}
    for x, y in path:
        marks[_cell(x, y)] = TRACE
    if path:
        marks[_cell(*path[0])] = BEGIN
    marks[_cell(pose.x, pose.y)] = ROBOT
    built = _built(walls)
    return [
        "".join(
            _wall((column, row), built) if (column, row) in built else marks.get((column, row), " ")
            for column in range(COLUMNS + 1)
        )
        for row in range(ROWS, -1, -1)
    ]


def _cell(x: float, y: float) -> tuple[int, int]:
    return round(x / CELL_WIDTH_M), round(y / CELL_HEIGHT_M)


def _built(walls: Sequence[Wall]) -> set[tuple[int, int]]:
    """The cells that upright and level walls stand on."""
    cells: set[tuple[int, int]] = set()
    for wall in walls:
        (column, row), (to_column, to_row) = _cell(wall.x1, wall.y1), _cell(wall.x2, wall.y2)
        columns = range(min(column, to_column), max(column, to_column) + 1)
        rows = range(min(row, to_row), max(row, to_row) + 1)
        cells.update((one, other) for one in columns for other in rows)
    return cells


def _wall(cell: tuple[int, int], built: set[tuple[int, int]]) -> str:
    column, row = cell
    up, down = (column, row + 1) in built, (column, row - 1) in built
    left, right = (column - 1, row) in built, (column + 1, row) in built
    if (up or down) and (left or right):
        return _CORNERS.get((up, left, down, right), "┼")
    return "─" if left or right else "│"
