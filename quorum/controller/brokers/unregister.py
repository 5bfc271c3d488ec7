"""UnregisterBroker: an administrator removes the registration of a broker that will not return.

The broker may be fenced or not. If it does return, it registers again, which counts as an unclean
stop. It stays in the replica lists of its partitions. A partition whose ISR has only this broker
has no leader then, unless its ELR (KIP-966) has another replica. Without ELR the broker stays in
such an ISR until it returns, or until an unclean election chooses another replica, if the topic
allows one.
"""

from __future__ import annotations

from quorate.quorum.controller.brokers.broker_changes import BrokerChange, leader_and_isr_changes
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import Outcome, RecordSteps, with_response
from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import UnregisterBrokerRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def unregister_broker(context: Context, request: UnregisterBrokerRequest) -> Outcome:
    """Return the records that remove the broker from its ISRs and then delete its registration. The
    records also elect new leaders for the partitions that it leads.

    The records may be split into several batches. If only a part of them is committed, the broker
    is still registered, and the request can be repeated. For an unknown broker, the result has no
    records, and its response has the error BROKER_ID_NOT_REGISTERED."""
    broker = context.image.brokers.get(request.broker_id)
    if broker is None:
        return Result(
            response=UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {request.broker_id} is not currently registered",
            )
        )
    cause = Cause.UNREGISTERED
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch, cause=cause)
    return with_response(removed(context, record), UnregisterBrokerResponse())


def removed(context: Context, record: UnregisterBrokerRecord) -> RecordSteps:
    """Return the records by which the broker leaves its ISRs, and then `record`."""
    change = BrokerChange(Cause.UNREGISTERED, remove=record.broker_id)
    keys = context.index.in_isr_of(record.broker_id)
    return [*(yield from leader_and_isr_changes(context, change, keys)), record]
