"""The branch view: branches and their odds as rows of buttons. Views go in, what was chosen comes out; no more.

On its element of the page stand `data-state`, `data-revision` (of the rows), `data-stale` and `data-ahead-ready`. It
hears `show`, `expect`, `settings`, `state`, `ahead` and `refuse` there. A choice leaves it as a cancelable `accept` event with
the rows' revision, the text to insert and the ids it stands for; whoever cancels the event has the choice refused, visibly.
"""

from interface.branch_view.branch_view import BranchView

__all__ = ["BranchView"]
