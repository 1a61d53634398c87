"""How do a person and a program read the answer?"""

import json

from extender.doctor.finding import Finding
from extender.doctor.report import as_json, as_text, exit_status

GOOD = Finding("verbs", "ok")
BAD = Finding("weight", "error", "weight is 0", "extenders[0]", "weight: 15\nor more")
UNCLEAR = Finding("pods", "unknown", "we may not read them")


def test_only_errors_count() -> None:
    assert [exit_status(each) for each in ([GOOD, UNCLEAR], [GOOD, BAD], [])] == [0, 1, 0]


def test_a_line_for_each_check_and_the_mend_below() -> None:
    assert as_text([GOOD, BAD, UNCLEAR]).splitlines() == [
        "ok       verbs",
        "error    weight: weight is 0",
        "         where: extenders[0]",
        "         mend:  weight: 15",
        "                or more",
        "unknown  pods: we may not read them",
        "3 checks: 1 error, 0 warning, 1 unknown, 1 ok",
    ]


def test_a_program_gets_the_same() -> None:
    assert json.loads(as_json([GOOD, BAD])) == {
        "exit": 1,
        "findings": [
            {"check": "verbs", "level": "ok", "what": "", "where": "", "mend": ""},
            {
                "check": "weight",
                "level": "error",
                "what": "weight is 0",
                "where": "extenders[0]",
                "mend": "weight: 15\nor more",
            },
        ],
    }
