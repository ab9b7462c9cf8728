"""The branch view: branches and their probabilities as rows of buttons. Takes views, dispatches choices.

Its element carries `data-state`, `data-revision` (of the rows), `data-stale` and `data-ahead-ready`, and listens to
the events `show`, `expect`, `settings`, `state`, `ahead` and `refuse`. It dispatches `mounted` once it listens, and
`accept` for a choice, with the rows' revision, the text to insert and its token ids. A listener that cancels `accept`
refuses the choice, visibly. `ban` and `point` say which token is banned and which text is pointed at.
"""

from interface.branch_view.branch_view import BranchView

__all__ = ["BranchView"]
