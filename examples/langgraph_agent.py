"""A LangGraph agent whose threads outlive the process: one line of it is ullage's.

pip install '.[langchain]' langchain-anthropic langgraph-checkpoint-sqlite   # in a clone of ullage
python -m examples.langgraph_agent incident-7 "What is wrong in app.log?"
"""

from __future__ import annotations

import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.sqlite import SqliteSaver

from examples.files import read_file
from ullage.integrations.langchain import UllageMiddleware


def main(thread: str, question: str, model: str = "claude-sonnet-5") -> str:
    """Answer a question in a thread, which goes on where it was left."""
    with SqliteSaver.from_conn_string("threads.db") as saver:
        agent = create_agent(
            ChatAnthropic(model=model, max_tokens=4_096),
            [read_file],
            middleware=[
                UllageMiddleware()
            ],  # ullage: fits, observes, brings the recall tools
            checkpointer=saver,
        )
        config = {"configurable": {"thread_id": thread}}
        state = agent.invoke({"messages": [("user", question)]}, config)
        return state["messages"][-1].text


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
