"""UnregisterBroker: an administrator removes the registration of a broker that will not return.

A broker that does return registers again. The last member of an ISR stays in it, as when a broker
is fenced.
"""

from __future__ import annotations

from quorate.quorum.controller.broker_changes import BrokerChange, leader_and_isr_changes
from quorate.quorum.controller.context import Context
from quorate.quorum.controller.result import Result
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import UnregisterBrokerRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def unregister_broker(context: Context, request: UnregisterBrokerRequest) -> Result:
    """Remove the broker from every ISR and delete its registration. An unknown broker gets
    BROKER_ID_NOT_REGISTERED."""
    broker = context.image.brokers.get(request.broker_id)
    if broker is None:
        return Result(
            response=UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            )
        )
    cause = Cause.UNREGISTERED
    change = BrokerChange(cause, remove=broker.id)
    records = [
        *leader_and_isr_changes(context, change, context.index.partitions_in_isr(broker.id)),
        UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch, cause=cause),
    ]
    return Result(records, UnregisterBrokerResponse(), atomic=False)
