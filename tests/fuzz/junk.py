"""What nobody should write, and anybody can: as raw JSON, whatever the field wants."""

import json
from typing import Final

DEEP: Final = 10_000
"""Levels of nesting; readers that recurse end far before."""

LONG: Final = 2**20
"""Characters: as many as a whole object may have."""


def _text(value: str) -> bytes:
    return json.dumps(value).encode()


NUMBERS: Final = (
    *(b"0", b"-1", b"1", b"1.5", b"-0.0", b"1e400", b"-1e400", b"1E-999", b"2147483648", b"-9223372036854775809"),
    *(b"9223372036854775808", b"18446744073709551616", b"9" * 400, b"9" * 5000, b"1e1000000", b"100000", b"999999999"),
)
NO_JSON: Final = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"",
    b"{",
    b'"',
    b"\xff",
    b'"\\ud800"',
    b'"\\x"',
    b"01",
    b"undefined",
)
SHAPES: Final = (
    *(b"null", b"true", b"false", b"[]", b"{}", b"[null]", b'{"":null}', b"[[]]", b'[""]', b'{"a":{"b":[{"c":null}]}}'),
    *(b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    b"[" + b"0," * 99_999 + b"0]",
    b"[" + b"{}," * 9_999 + b"{}]",
    b'["' + b'","'.join(str(n).encode() for n in range(10_000)) + b'"]',
    b"{" + b",".join(b'"k%d":"v"' % n for n in range(10_000)) + b"}",
    b'{"a":"1","a":"2"}',
)
_TEXTS: Final = (
    *("", " ", "0", "-1", "1", "+1", "1.5", "1e1000000", "1E30", "1e31", "9" * 5000, "9" * 64, "0." + "0" * 60 + "1"),
    *(
        "9999999999999999999Ei",
        "1e-30",
        ".",
        "+",
        "e",
        "1ee1",
        "0x10",
        "1_000",
        "\u0661\u0662",
        "\uff11",
        "NaN",
        "Infinity",
    ),
    *("\x00", "\n\r\t", "\u202e", "\ufeff", "\U0001f4a9" * 300, "\u00df" * 254, "'\"\\", "%s%n{0}{x}", "</script>"),
    *("/", "a/", "/a", "a/b/c", "*/*", "../..", ".", "-", "a" * 253, "a" * 254, "A.b-c_d", "a" * LONG, "a" * 2**18),
    *(
        "[" * DEEP,
        "{" * DEEP,
        "[]",
        "{}",
        "null",
        "[null]",
        '[""]',
        '["a/b","a/b"]',
        '{"a":1}',
        '[{"id":"","index":-1}]',
    ),
    *(
        "1h" * 20_000 + "x",
        "1." * 20_000,
        "1" * 30_000 + "h",
        "9h" * 9,
        "-5m",
        "1h1h1h",
        "9" * 9 + "h",
        ".s",
        "\u03bcs",
    ),
    *("a-" * 20_000, "a" * 252 + "-", ":" * 10_000, "," * 10_000, ";" * 10_000, "GPU-0,1,1,NVIDIA,true:" * 5000),
    *(
        "--nnodes=" * 20_000,
        "--nnodes=999999",
        "--nnodes=" + "9" * 1000,
        "true",
        "false",
        "allocating",
        "Deleted",
        "mig",
    ),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "2026-01-02"),
    *("2026-02-30T00:00:00Z", "2026-01-02T03:04:60Z", "0001-01-01T00:00:00+23:59", "1" * 10_000 + "-01-01T00:00:00Z"),
    *(
        "0",
        "999999999",
        "1000000000",
        "100000",
        "2147483647",
        "0.0000001",
        "1000000",
        "0.5",
        "1000",
        "64Ki",
        "-1Gi",
        "1.5m",
    ),
    json.dumps([f"n{number}/g" for number in range(40_000)]),
    json.dumps(["other/theirs", "default/g", "kube-system/x"]),
    json.dumps({"gatherStrategy": [{"layer": f"l{number}", "strategy": "MustGather"} for number in range(5000)]}),
    json.dumps(
        [{"id": f"GPU-{number}", "count": 1, "devmem": 1, "devcore": 1, "health": True} for number in range(3000)]
    ),
    json.dumps([{"id": "GPU-0", "index": 10**18, "count": 2**63 - 1, "devmem": 2**63 - 1, "devcore": 2**63 - 1}]),
    json.dumps(
        {"gpu": [{"minor": number, "resources": {"koordinator.sh/gpu-core": "1e30"}} for number in range(2000)]}
    ),
    json.dumps(
        {"node": "n1", "cards": [{"index": 0, "uuid": "GPU-0", "milli": 2**62, "bytes": 2**62, "container": 2**62}]}
    ),
)
TEXTS: Final = tuple(_text(text) for text in _TEXTS)

JUNK: Final = (*NUMBERS, *NO_JSON, *SHAPES, *TEXTS)
"""All of it. What is large comes as often as what is small."""
