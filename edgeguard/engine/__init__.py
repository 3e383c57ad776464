"""The engine: a language model behind ONNX Runtime that answers one observation in as few passes as possible.

``worker`` is the process that owns the model, ``spawner`` the small process that starts and buries workers. Whoever
asks for an answer names these two modules and talks to them in messages; only the bench imports the parts themselves.
Nothing is imported here: onnxruntime, numpy and tokenizers are the worker's alone.
"""
