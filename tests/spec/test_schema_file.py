"""The schema that editors read beside the sites is the one that the kinds make."""

from __future__ import annotations

import json
from pathlib import Path

from bfinfra.spec.schema import schema

FILE = Path(__file__).parents[2] / "specs/site.schema.json"


def test_the_schema_file_is_what_the_kinds_make():
    assert json.loads(FILE.read_text()) == schema(), "renew it: bfinfra schema > specs/site.schema.json"
