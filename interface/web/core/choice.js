// What a click means: which tokens and which text it inserts, and what is left of the branch then.

// All of a row up to one of its pieces.
export function choiceOf(row, index, token) {
  const {branch} = row, {tokens} = row.pieces[token];
  return {
    revision: row.revision, branch: index, token,
    text: textUpTo(row, token), ids: branch.ids.slice(0, tokens), healed: row.healed,
    logprobs: branch.logprobs.slice(0, tokens), rest: restOf(row, tokens),
  };
}

export const textUpTo = (row, token) => row.pieces.slice(0, token + 1).map(piece => piece.text).join('');

// One of the beginnings that no row begins with.
export const choiceOfOther = ({ids, text, logprobs}, token, {revision, healed}) =>
  ({revision, branch: null, token, text, ids, healed, logprobs, rest: null});

// What is left of a branch after some of its tokens, with the nodes that its odds at other temperatures come from.
function restOf({branch, nodes}, tokens) {
  const pieces = branch.pieces.filter(piece => piece.tokens > tokens).map(piece => ({...piece, tokens: piece.tokens - tokens}));
  if (!pieces.length) return null;
  const packed = (branch.at || []).slice(tokens).map(index => nodes?.[index]);
  return {
    ids: branch.ids.slice(tokens), logprobs: branch.logprobs.slice(tokens), pieces, ended: branch.ended, healed: false,
    ...(packed.length && packed.every(Boolean) ? {nodes: packed, at: packed.map((_, index) => index)} : {}),
  };
}

// Which piece of a row completes its next word; the last where none is known to; -1 where there is nothing to insert.
export function nextWordEnd({pieces}) {
  const found = pieces.findIndex(piece => piece.ends >= 1);
  return found < 0 ? pieces.length - 1 : found;
}

// What never to offer again: a token, which is the last one of a piece. `first`: nothing of a row stands before the piece. One
// that stands in place of what was typed is named whole; of a character of several tokens none can be left out without
// leaving out others; of a view that was stored none can.
export function tokenToBan({text, ids}, first, {stored = false, view}) {
  const healed = view.branches.some(branch => branch.healed) && first, typed = healed && ids.length === 1 ? view.given : '';
  return {own: typed + text, id: ids.at(-1), bannable: !stored && ids.length <= 1 + Number(healed)};
}
