"""What the backends of ONNX Runtime share: sessions, configurations, profiles, models rewritten for it."""
