from collections.abc import Sequence

from analysis.history.judgement import Judgement


def history_page(judgements: Sequence[Judgement]) -> str:
    return ""
