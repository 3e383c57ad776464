"""Models: recipes as data, GGUF in, a folder in onnxruntime-genai's layout out, and a look inside such a folder.

Nothing here runs a model, and nothing here is imported while a robot moves: building and inspecting belong to the
bench, and need the extra ``models`` (gguf, onnx).
"""
