"""What the tests of this folder share."""

from __future__ import annotations

import pytest
from servers.agent import Agent


@pytest.fixture
def agent(tmp_path_factory, monkeypatch):
    """A real ssh-agent without keys, that $SSH_AUTH_SOCK names."""
    with Agent(tmp_path_factory.mktemp("agent")) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(agent.socket))
        yield agent
