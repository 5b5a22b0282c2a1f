"""Tests of engine.isolated."""
