"""The embedder's guide: README.md, a configuration to try it with, and four complete programs to copy from."""
