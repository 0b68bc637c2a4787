"""What the members of all instances sent, counted from the records. Pure but for reading."""

from collections.abc import Sequence

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.rundir.facts import MemberCounts
from plimsoll.rundir.records import MEMBER, SENT_TO_LOGIN, WARMUP


def count_members(shards: Sequence[ShardRun]) -> MemberCounts | None:
    """Return the members of all instances together; None where no instance says that it had any.

    A client belongs to one instance, so clients add up. Accounts do not: every instance uses them from the
    first on. Both are None where an instance was killed before it said how many it had.
    """
    told = [one.summary.members for one in shards if one.summary]
    said = [each for each in told if each]
    if not said:
        return None
    whole = len(told) == len(shards) and all(each.clients is not None for each in said)
    accounts = [each.accounts for each in said if each.accounts is not None]
    requests = sent_to_login = 0
    for one in shards:
        for block in one.requests.blocks() if one.requests else ():
            flags = block["flags"][(block["flags"] & WARMUP) == 0]
            requests += int(((flags & MEMBER) != 0).sum())
            sent_to_login += int(((flags & SENT_TO_LOGIN) != 0).sum())
    return MemberCounts(
        clients=sum(each.clients or 0 for each in said) if whole else None,
        accounts=max(accounts) if whole and accounts else None,
        requests=requests,
        sent_to_login=sent_to_login,
    )
