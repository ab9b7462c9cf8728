"""The branch view: branches and their odds as rows of buttons. Views go in, what was chosen comes out; no more.

On its element of the page stand `data-state`, `data-revision` (of the rows) and `data-stale`. It hears `expect` there,
with the revision that is wanted from now on. A choice leaves it as a cancelable `accept` event with the rows' revision,
the text to insert and the ids it stands for; whoever cancels the event has the choice refused, visibly.
"""

from interface.branch_view.branch_view import BranchView

__all__ = ["BranchView"]
