"""Makes data/samples/maseval from the GAIA2 sample run, in the form of MASEval 0.5.1's reports (not by MASEval)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from paths import SAMPLES, write
from recording_ids import identifier

BEGAN = datetime.fromisoformat("2026-03-06T09:15:00")
THREAD = 1


def _pair() -> tuple[dict[str, Any], dict[str, Any]]:
    (hf,) = (SAMPLES / "gaia2" / "hf").glob("*.json")
    lite = SAMPLES / "gaia2" / "lite" / hf.name
    return json.loads(hf.read_text(encoding="utf-8")), json.loads(lite.read_text(encoding="utf-8"))


def _wall(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def _gathered(number: int) -> str:
    return _wall(60 + number * 1e-5)


def _agents(messages: list[dict[str, Any]]) -> dict[str, Any]:
    said = [{"role": message["role"], "content": message["content"]} for message in messages]
    return {
        "gaia2_agent": {
            "type": "DefaultGaia2AgentAdapter",
            "gathered_at": _gathered(1),
            "name": "gaia2_agent",
            "agent_type": "DefaultGaia2Agent",
            "message_count": len(said),
            "messages": said,
            "callbacks": [],
            "logs": [],
            "iteration_count": sum(message["role"] == "assistant" for message in said),
            "terminated": True,
        }
    }


def _models(messages: list[dict[str, Any]]) -> dict[str, Any]:
    places = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    logs = [
        {
            "timestamp": _wall(3 * number),
            "message_count": place + 1,
            "response_type": "text",
            "response_length": len(messages[place]["content"]),
            "tool_calls_count": 0,
            "duration_seconds": 1.25,
            "status": "success",
            "generation_params": {},
            "tools_provided": 0,
            "kwargs": {"temperature": "0.5", "max_tokens": "16384"},
        }
        for number, place in enumerate(places)
    ]
    return {
        "agent_model": {
            "type": "ScriptedAdapter",
            "gathered_at": _gathered(2),
            "model_id": "scripted/harbour-1",
            "total_calls": len(logs),
            "successful_calls": len(logs),
            "failed_calls": 0,
            "total_duration_seconds": 1.25 * len(logs),
            "average_duration_seconds": 1.25,
            "logs": logs,
            "name": "agent_model",
        }
    }


def _invocation(event: dict[str, Any], number: int) -> tuple[str, dict[str, Any]]:
    action, seed = event["action"], f"maseval invocation {number}"
    at = _wall(3 * number + 1.5)
    given = {arg["name"]: arg["value"] for arg in action["args"] or [] if arg["value"] is not None}
    failed = event["metadata"]["exception"]
    clock = event["event_time"]
    number_id = identifier(seed, 32)
    return f"{action['app']}__{action['function']}", {
        "id": "-".join((number_id[:8], number_id[8:12], number_id[12:16], number_id[16:20], number_id[20:])),
        "inputs": given,
        "outputs": event["metadata"]["return_value"] if failed is None else failed,
        "status": "success" if failed is None else "error",
        "timestamp": at,
        "meta": {
            "wall_time": at,
            "simulation_time_before": clock,
            "simulation_time_after": clock,
            "simulation_time_elapsed": 0.0,
        },
    }


def _tools(events: list[dict[str, Any]]) -> dict[str, Any]:
    tools: dict[str, Any] = {"CalendarApp__get_calendar_event": []}
    for number, event in enumerate(event for event in events if event["event_type"] == "AGENT"):
        name, invocation = _invocation(event, number)
        tools.setdefault(name, []).append(invocation)
    return {
        name: {
            "type": "AREToolWrapper",
            "gathered_at": _gathered(3 + number),
            "name": name,
            "invocations": invocations,
            "total_invocations": len(invocations),
        }
        for number, (name, invocations) in enumerate(sorted(tools.items()))
    }


def _task(capability: str) -> dict[str, Any]:
    return {
        "query": "",
        "metadata": {"scenario_id": "harbour_desk", "capability": capability},
        "protocol": {
            "timeout_seconds": 120.0,
            "timeout_action": "skip",
            "max_retries": 1,
            "priority": 0,
            "tags": {"capability": capability, "benchmark": "gaia2"},
        },
    }


def failed_report() -> dict[str, Any]:
    hf, lite = _pair()
    (history,) = lite["per_agent_interaction_histories"].values()
    (usage,) = lite["per_agent_llm_usage_stats"].values()
    messages = [message for message in history if message["role"] != "system"]
    tools = _tools(hf["completed_events"])
    last = hf["completed_events"][-1]["event_time"]
    environment = {
        "type": "Gaia2Environment",
        "gathered_at": _gathered(20),
        "tool_count": len(tools),
        "tools": tools,
        "scenario_id": "harbour_desk",
        "duration": 120,
        "seed": None,
        "app_names": [],
        "oracle_traces": None,
        "final_simulation_time": last,
        "capability": "adaptability",
        "universe_id": None,
        "name": "env",
    }
    stamp = {"timestamp": _gathered(0), "thread_id": THREAD, "total_components": 3}
    read, written = sum(usage["prompt_tokens"]), sum(usage["completion_tokens"])
    return {
        "task_id": "harbour_0001",
        "repeat_idx": 0,
        "status": "success",
        "error": None,
        "traces": {
            "metadata": stamp,
            "agents": _agents(messages),
            "models": _models(messages),
            "tools": {},
            "simulators": {},
            "callbacks": {},
            "environment": environment,
            "user": None,
            "other": {},
        },
        "config": {"metadata": stamp, "benchmark": {"timestamp": _wall(0), "git": None, "environment": {}}},
        "usage": {
            "metadata": stamp,
            "models": {
                "agent_model": {
                    "cost": 0.0,
                    "input_tokens": read,
                    "output_tokens": written,
                    "total_tokens": read + written,
                    "cached_input_tokens": 0,
                    "reasoning_tokens": 0,
                }
            },
        },
        "eval": [
            {
                "gsr": 0.0,
                "partial_gsr": 0.0,
                "passed": False,
                "status": "failed",
                "rationale": lite["validation_rationale"],
                "capability": "adaptability",
                "tool_call_count": sum(tool["total_invocations"] for tool in tools.values()),
                "final_simulation_time": last,
            }
        ],
        "task": _task("adaptability"),
    }


if __name__ == "__main__":
    write(SAMPLES / "maseval" / "harbour_desk.json", json.dumps([failed_report()], indent=2) + "\n")
