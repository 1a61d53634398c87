"""How are a table's figures drawn? As a PNG of plain bars, by the standard library alone: one panel for each column."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.bench.report import Row, shown

LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.,%-()/"
DOTS: Final = (
    "755572622771747713175571174717747577112275757757172575565656344436555674647746443455355755"
    "722271115255655444475775565555255526564425563656553421672222555575555255775552555522271247"
    "00002000245124500700244422111211244"
)
"""Each letter in turn has five rows; a digit has the three dots of a row as its bits."""

GLYPHS: Final = {letter: DOTS[5 * place : 5 * place + 5] for place, letter in enumerate(LETTERS)}

DOT = 2
LETTER, LINE = 4 * DOT, 9 * DOT
LABEL, BAR, VALUE = 30 * LETTER, 220, 12 * LETTER
WIDTH = LABEL + BAR + VALUE
IN_A_ROW = 2
WHITE, BLACK = (255, 255, 255), (40, 40, 40)
COLOURS = ((213, 94, 0), (230, 159, 0), (0, 114, 178), (86, 180, 233), (0, 158, 115), (204, 121, 167))
"""Okabe and Ito's, which colour-blind people can tell apart."""


def draw_bars(path: Path, rows: Sequence[Row], named_by: Sequence[str]) -> None:
    """Draw each column of the rows; those in `named_by` name the bars, the last of them their colour."""
    columns = [column for column in rows[0] if column not in named_by]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(r[named_by[-1]] for r in rows))}
    height = (len(rows) + 3) * LINE
    canvas = _Canvas(IN_A_ROW * WIDTH + LETTER, -(-len(columns) // IN_A_ROW) * height + LINE)
    for number, column in enumerate(columns):
        left, top = LETTER + number % IN_A_ROW * WIDTH, LINE + number // IN_A_ROW * height
        canvas.write(left, top, column)
        values = [float(row[column]) for row in rows]
        for place, (row, value) in enumerate(zip(rows, values, strict=True), start=1):
            y, length = top + place * LINE, round(BAR * value / (max(values) or 1))
            canvas.write(left, y, " ".join(shown(row[name]) for name in named_by))
            canvas.fill(left + LABEL, y - DOT, max(length, 1), LINE - 2 * DOT, colours[row[named_by[-1]]])
            canvas.write(left + LABEL + length + LETTER, y, f"{value:.1f}")
    path.write_bytes(canvas.png())


class _Canvas:
    def __init__(self, width: int, height: int) -> None:
        self._width, self._rows = width, [bytearray(bytes(WHITE) * width) for _ in range(height)]

    def fill(self, left: int, top: int, width: int, height: int, colour: tuple[int, int, int]) -> None:
        for row in self._rows[top : top + height]:
            row[3 * left : 3 * (left + width)] = bytes(colour) * width

    def write(self, left: int, top: int, text: str) -> None:
        for place, letter in enumerate(text.upper()):
            for y, bits in enumerate(GLYPHS.get(letter, "00000")):
                for x in range(3):
                    if int(bits) & 4 >> x:
                        self.fill(left + place * LETTER + x * DOT, top + y * DOT, DOT, DOT, BLACK)

    def png(self) -> bytes:
        header = struct.pack(">2I5B", self._width, len(self._rows), 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + row for row in self._rows))
        chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        )
