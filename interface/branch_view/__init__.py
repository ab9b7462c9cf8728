"""The branch view: branches and their odds as rows of buttons. Views go in, what was chosen comes out; no more.

On its element of the page stand `data-state`, `data-revision` (of the rows), `data-stale` and `data-ahead-ready`. It
hears `show`, `expect`, `settings`, `state`, `ahead` and `refuse` there, and says `mounted` once it does. A choice is
told by a cancelable `accept` event with the rows' revision, the text to insert and the ids that it stands for: whoever
cancels it has the choice refused, visibly. `ban` and `point` tell what is not wanted again, and what is pointed at.
"""

from interface.branch_view.branch_view import BranchView

__all__ = ["BranchView"]
