"""The branch view: a component that shows branches and their odds as rows of buttons. Views in, events out.

Its element has the attributes `data-state`, `data-revision` (of the rows), `data-stale` and `data-ahead-ready`. It
listens to the events `show`, `expect`, `settings`, `state`, `ahead` and `refuse`, and sends `mounted` when it is ready.
A click sends a cancelable `accept` event with the rows' revision, the text to insert and its token ids; a listener that
cancels it refuses the click, and the row shows that. `ban` names a token to be left out, `point` the token under the
pointer.
"""

from interface.branch_view.branch_view import BranchView

__all__ = ["BranchView"]
