"""Tests of engine.apart."""
