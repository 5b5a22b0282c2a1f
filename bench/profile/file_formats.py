"""What a profile keeps beside its lines, for docs/formats.json."""

from bench.profile.events import AnyEvent

FORMATS = {"events/CASE.jsonl.gz": AnyEvent}
