"""Tests by purpose, one folder each; `shared` finds data that lives outside the repository."""
