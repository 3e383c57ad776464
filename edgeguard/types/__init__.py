"""The nouns that flow from the robot's observation to the bytes on the wire. Data only: frozen, no behaviour."""

from edgeguard.types.answer import Answer, Finish, Pass, Request
from edgeguard.types.board import BoardState, ThermalLevel
from edgeguard.types.decision import (
    Budget,
    Cause,
    CycleRecord,
    Decision,
    Event,
    Grade,
    Mode,
    OperatorWord,
    SetPoint,
    Source,
)
from edgeguard.types.observation import Observation, Value
from edgeguard.types.wire import Action, Command, Echo, LinkState, LinkStatus, MotorFlag

__all__ = [
    "Action",
    "Answer",
    "BoardState",
    "Budget",
    "Cause",
    "Command",
    "CycleRecord",
    "Decision",
    "Echo",
    "Event",
    "Finish",
    "Grade",
    "LinkState",
    "LinkStatus",
    "Mode",
    "MotorFlag",
    "Observation",
    "OperatorWord",
    "Pass",
    "Request",
    "SetPoint",
    "Source",
    "ThermalLevel",
    "Value",
]
