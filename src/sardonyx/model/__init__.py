"""Files ↔ `onnx_ir.Model`: loading under limits, saving atomically."""
