"""Configurations: agents as YAML describes them."""

from palaver.agent.config.building import build_agent, build_agents
from palaver.agent.config.specs import AgentSpec, Config, load_config

__all__ = ["AgentSpec", "Config", "build_agent", "build_agents", "load_config"]
