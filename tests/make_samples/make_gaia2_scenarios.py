"""Makes data/gaia2/scenarios and the scripts of data/gaia2/scripts: small stand-ins for GAIA2, written by us.

Usage: `python make_gaia2_scenarios.py`. They are in the JSON form of ARE 1.2.0, from which it runs them. The samples
`boat_moves` and `boat_forgets` of data/samples/gaia2 are executions of them: `tracejury gaia2 run samples --capability
adaptability --repeats 1 --model script:data/gaia2/scripts/boat_moves.json --judge-model
script:data/gaia2/scripts/judge.json`, the other with `boat_forgets.json`; from `trace/` of each execution's
folder, without the gui file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[2] / "data" / "gaia2"
START = 1_772_524_800.0  # 2026-03-03 08:00 UTC, on the simulated clock
MAIL = "runa@example.com"
ASK = (
    "Put the 07:10 boat to Ness on 2026-03-04 into my calendar as 'Boat to Ness', until 07:45, and write an e-mail to "
    f"{MAIL} with the subject 'Boat on Wednesday' that I come with that boat. Tell me when both are done."
)
TIMES = "The boat to Ness goes at 07:10 and takes 35 minutes. Runa"
ASK_ALL = (
    f"Runa writes to you when the boat goes. {ASK} If her answer names another boat, move the entry to it, "
    "for 35 minutes, and tell me."
)
LETTER = "Hello Runa, I come with the boat at 07:10 on Wednesday 4 March. Aud"
# Said otherwise than by the oracle, so that a judge must read it.
WRITTEN = "Dear Runa, on Wednesday 4 March I take the 07:10 boat. Aud"
TOLD = "Done: the boat stands in your calendar, and I have written to Runa that you come."
DONE = "The boat is in your calendar and Runa knows that you come."
MOVED = "Runa says that the boat goes at 07:40, so I moved the entry to 07:40 until 08:15."
PHONE = "Runa's phone number is +4790000022."


def app(name: str, state: Any) -> dict[str, Any]:
    return {"name": name, "class_name": name, "app_state": state}


def contact(number: str, first: str, last: str, email: str, phone: str, *, is_user: bool = False) -> dict[str, Any]:
    return {
        "first_name": first, "last_name": last, "contact_id": number, "is_user": is_user, "gender": "Female",
        "age": 40, "nationality": None, "city_living": None, "country": None, "status": "Employed", "job": None,
        "description": None, "phone": phone, "email": email, "address": None,
    }  # fmt: skip


def apps() -> list[dict[str, Any]]:
    people = [
        contact("c-user", "Aud", "Holm", "aud@example.com", "+4790000021", is_user=True),
        contact("c-runa", "Runa", "Skar", MAIL, "+4790000022"),
    ]
    folders = {name: {"folder_name": name, "emails": []} for name in ("INBOX", "SENT", "DRAFT", "TRASH")}
    mail = {"user_email": "aud@example.com", "view_limit": 5, "folders": folders}
    contacts = {"contacts": {one["contact_id"]: one for one in people}, "view_limit": 10}
    return [
        app("AgentUserInterface", {"messages": []}),
        app("Calendar", {"events": {}}),
        app("Contacts", contacts),
        app("EmailClientV2", mail),
        app("SystemApp", None),
    ]


def argument(name: str, value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"name": name, "value": text, "value_type": type(value).__name__}


def event(number: str, kind: str, target: str, after: Sequence[str], seconds: float, **args: Any) -> dict[str, Any]:
    """An event of the plan; those of the agent are the oracle's."""
    is_oracle = kind == "AGENT"
    name, function = target.split("__")
    action = {
        "action_id": "" if is_oracle else f"{name}.{function}-{number}",
        "app": name,
        "function": function,
        "operation_type": None if is_oracle else "WRITE",
        "args": [argument(key, value) for key, value in args.items()],
    }
    told = {
        "class_name": "OracleEvent" if is_oracle else "Event",
        "event_type": kind,
        "event_time": None,
        "event_id": f"OracleEvent-AGENT-{number}" if is_oracle else f"Event-{kind}-{number}",
        "dependencies": list(after),
        "event_relative_time": seconds,
        "action": action,
    }
    return told | ({"event_time_comparator": None} if is_oracle else {})


def entry(number: str, after: str, start: str, end: str) -> dict[str, Any]:
    times = {"start_datetime": f"2026-03-04 {start}:00", "end_datetime": f"2026-03-04 {end}:00"}
    return event(number, "AGENT", "Calendar__add_calendar_event", [after], 1.0, title="Boat to Ness", **times)


def first_turn(task: str, *, by_mail: bool = False) -> list[dict[str, Any]]:
    """The task; with `by_mail` the time of the boat comes by e-mail while the agent waits."""
    asked = [event("u1", "USER", "AgentUserInterface__send_message_to_agent", [], 2.0, content=task)]
    after = "Event-USER-u1"
    if by_mail:
        mail = {"sender": MAIL, "subject": "Timetable", "content": TIMES}
        asked.append(event("e0", "ENV", "EmailClientV2__send_email_to_user_only", [after], 6.0, **mail))
        after = "Event-ENV-e0"
    letter = {"recipients": [MAIL], "subject": "Boat on Wednesday", "content": LETTER}
    return [
        *asked,
        entry("o1", after, "07:10", "07:45"),
        event("o2", "AGENT", "EmailClientV2__send_email", [after], 1.0, **letter),
        event(
            "o3",
            "AGENT",
            "AgentUserInterface__send_message_to_user",
            ["OracleEvent-AGENT-o1", "OracleEvent-AGENT-o2"],
            1.0,
            content=DONE,
        ),
    ]


def later_turns() -> list[dict[str, Any]]:
    answer = {
        "sender": MAIL,
        "email_id": "{{OracleEvent-AGENT-o2}}",
        "content": "The boat goes at 07:40 that day. Runa",
    }
    ask = "Thanks. What is Runa's phone number?"
    say = "AgentUserInterface__send_message_to_user"
    return [
        event("e1", "ENV", "EmailClientV2__reply_to_email_from_user", ["OracleEvent-AGENT-o3"], 4.0, **answer),
        event(
            "o4", "AGENT", "Calendar__delete_calendar_event", ["Event-ENV-e1"], 1.0, event_id="{{OracleEvent-AGENT-o1}}"
        ),
        entry("o5", "Event-ENV-e1", "07:40", "08:15"),
        event("o6", "AGENT", say, ["OracleEvent-AGENT-o4", "OracleEvent-AGENT-o5"], 1.0, content=MOVED),
        event("u2", "USER", "AgentUserInterface__send_message_to_agent", ["OracleEvent-AGENT-o6"], 2.0, content=ask),
        event("o7", "AGENT", say, ["Event-USER-u2"], 1.0, content=PHONE),
    ]


def scenario(name: str, capability: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    definition = {
        "scenario_id": name, "seed": 0, "duration": 1800.0, "time_increment_in_seconds": 1, "start_time": START,
        "run_number": None, "hints": [], "config": None, "has_a2a_augmentation": False,
        "has_tool_augmentation": False, "has_env_events_augmentation": False, "has_exception": False,
        "exception_type": None, "exception_message": None, "tags": [capability.capitalize()], "hf_metadata": None,
    }  # fmt: skip
    nobody = {"annotation_id": None, "annotator": None, "validation_decision": None, "comment": None, "date": 0.0}
    return {
        "world_logs": [],
        "apps": apps(),
        "events": events,
        "completed_events": [],
        "version": "are_simulation_v1",
        "context": None,
        "augmentation": None,
        "metadata": {
            "definition": definition,
            "simulation": {"agent_id": None, "model_id": None},
            "annotation": nobody,
            "execution": None,
            "runner_config": None,
        },
    }


def step(thought: str, tool: str, **arguments: Any) -> str:
    call = json.dumps({"action": tool, "action_input": arguments}, indent=1)
    return f"Thought: {thought}\n\nAction:\n{call}\n<end_action>"


def first_steps() -> list[str]:
    return [
        step(
            "I enter the boat first, then write to Runa, then tell the user.",
            "Calendar__add_calendar_event",
            title="Boat to Ness",
            start_datetime="2026-03-04 07:10:00",
            end_datetime="2026-03-04 07:45:00",
        ),
        step(
            "The entry is made. Now the e-mail.",
            "EmailClientV2__send_email",
            recipients=[MAIL],
            subject="Boat on Wednesday",
            content=WRITTEN,
        ),
        step("Both are done.", "AgentUserInterface__send_message_to_user", content=TOLD),
    ]


def later_steps() -> list[str]:
    times = {"start_datetime": "2026-03-04 07:40:00", "end_datetime": "2026-03-04 08:15:00"}
    return [
        step("Runa has answered. I look at the mail.", "EmailClientV2__list_emails", folder_name="INBOX"),
        step(
            "The boat goes at 07:40. I look for the entry.",
            "Calendar__get_calendar_events_from_to",
            start_datetime="2026-03-04 00:00:00",
            end_datetime="2026-03-05 00:00:00",
        ),
        step("I delete the old entry.", "Calendar__delete_calendar_event", event_id="{{event_id}}"),
        step("I make the new one.", "Calendar__add_calendar_event", title="Boat to Ness", **times),
        step("The entry is moved.", "AgentUserInterface__send_message_to_user", content=MOVED),
        step("I look up Runa.", "Contacts__search_contacts", query="Runa"),
        step("I tell the number.", "AgentUserInterface__send_message_to_user", content=PHONE),
    ]


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    put(HOME / "scenarios/execution/boat_entry.json", scenario("tracejury_boat_entry", "execution", first_turn(ASK)))
    replies = scenario("tracejury_boat_moves", "adaptability", [*first_turn(ASK_ALL, by_mail=True), *later_turns()])
    put(HOME / "scenarios/adaptability/boat_moves.json", replies)
    put(HOME / "scripts/boat_entry.json", first_steps())
    wait = step("Runa has not written yet. I wait.", "SystemApp__wait_for_notification", timeout=30)
    look = step("A mail has come.", "EmailClientV2__list_emails", folder_name="INBOX")
    put(HOME / "scripts/boat_moves.json", [wait, look, *first_steps(), *later_steps()])
    forgets = [one for one in later_steps() if "delete_calendar_event" not in one and "07:40:00" not in one]
    put(HOME / "scripts/boat_forgets.json", [wait, look, *first_steps(), *forgets])
    put(HOME / "scripts/judge.json", ["- Reasoning: they match.\n- Evaluation: [[True]]\n- Evaluation: [[Success]]"])


if __name__ == "__main__":
    main()
