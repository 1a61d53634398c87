"""Tests of `extender.wire.cards`."""
