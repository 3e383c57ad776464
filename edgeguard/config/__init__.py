"""The configuration: one TOML file, read once, bounded where it is read, with typos fatal."""

from edgeguard.config.load import load_config, parse_config, read_config
from edgeguard.config.sections import Config

__all__ = ["Config", "load_config", "parse_config", "read_config"]
