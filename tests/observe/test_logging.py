"""What is on standard error once logging is configured."""

import json
import logging
import secrets
from typing import Any

import pytest
import structlog

from extender.observe.logging import configure_logging

pytestmark = pytest.mark.usefixtures("logs_as_before")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_line_is_json_with_the_facts_as_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    structlog.get_logger().info("listed", resource="pods", objects=3, odd={1, 2})
    [line] = lines(capsys)
    assert line["event"] == "listed"
    assert (line["level"], line["resource"], line["objects"]) == ("info", "pods", 3)
    assert line["timestamp"].endswith("Z")


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", "json")
    structlog.get_logger().info("chatter")
    structlog.get_logger().warning("trouble")
    assert [line["event"] for line in lines(capsys)] == ["trouble"]


def test_the_libraries_warnings_look_like_ours(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug", "json")
    logging.getLogger("aiohttp.server").info("chatter")
    logging.getLogger("aiohttp.server").error("lost %s", "it")
    [line] = lines(capsys)
    assert (line["event"], line["level"]) == ("lost it", "error")


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_traceback_does_not_show_the_token(style: Any, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", style)
    token = secrets.token_hex(16)
    try:
        int(token, base=2)
    except ValueError as error:
        structlog.get_logger().error("boom", exc_info=RuntimeError("no base 2").with_traceback(error.__traceback__))
    written = capsys.readouterr().err
    assert "RuntimeError: no base 2" in written
    assert token not in written


def test_text_is_for_eyes(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "text")
    structlog.get_logger().info("listed", resource="pods")
    written = capsys.readouterr().err
    assert "listed" in written
    assert "resource=pods" in written
