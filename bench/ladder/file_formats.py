"""What a ladder writes beside its folder, for docs/formats.json."""

from bench.ladder.saves import Save, SavesOutput
from bench.views.tables.compiled_tables import CompiledOutput

FORMATS = {
    "ladder --compile --format json": CompiledOutput,
    "ladder --saves --format json": SavesOutput,
    "saves.jsonl": Save,
}
