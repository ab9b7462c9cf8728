// What the branch view says: figures, signs for what cannot be seen, and sentences.
const PLAIN_HINT = 'Click any word to write up to it.';
export const REFUSAL = 'That branch was for another text: it was not inserted.';
export const PARTIAL_TOKEN_SIGN = '◌';   // a token that holds no whole character, or no text at all

const plainNumber = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
export const formatNumber = number => plainNumber.format(number);
export const formatCount = (number, one, many = `${one}s`) => `${formatNumber(number)} ${number === 1 ? one : many}`;

const LEAST = 0.0001;   // per cent: what is less is shown as less than that

// Figures do not break over lines.
export function formatPercent({p, bound = false, atLeast = false}) {
  const hundredths = p * 100;
  if (bound) return `≤ ${hundredths < LEAST ? `${LEAST} %` : p >= 0.995 ? '100 %' : formatPercent({p})}`;
  if (atLeast) return `≥ ${p >= 0.995 ? '99 %' : hundredths < LEAST ? '0 %' : formatPercent({p})}`;
  if (hundredths >= 99.5 && hundredths < 99.995) return '> 99 %';
  if (hundredths < LEAST) return hundredths > 0 ? `< ${LEAST} %` : '0 %';
  return `${Number(hundredths.toPrecision(hundredths >= 0.1 ? 2 : 1))} %`;
}

// Signs for what cannot be seen: line breaks, tabs, lone spaces, and characters without any width.
export function visibleText(text) {
  const signed = text.replace(/\n/g, '↵').replace(/\r/g, '␍').replace(/\t/g, '⇥');
  if (/^ +$/.test(signed)) return signed.replace(/ /g, '␣');
  if (/^[\p{C}\p{Z}\p{M}]+$/u.test(signed) && !/^\p{M}+$/u.test(signed))
    return [...signed].map(sign => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`).join(' ');
  return signed;
}

// Without the white space around it, unless it is nothing else.
const bare = text => visibleText(text.trim() || text);

export const quotedText = text => `“${bare(text)}”`;

// What may come next, as a word of a list.
export const continuationLabel = ({text, end}) => (end ? 'end' : text === null ? PARTIAL_TOKEN_SIGN : bare(text));

const SUMMED_UP = 4;

// The likeliest of what no row begins with, in one line.
export function likeliestLabels(others) {
  const words = others.filter(other => other.text?.trim()), possible = words.filter(other => other.odds.p > 0);
  const likely = (possible.length ? possible : words).slice(0, SUMMED_UP).map(other => bare(other.text));
  return likely.join(', ') + (others.length > likely.length ? ' …' : '');
}

// Which of the figures a row's share is, and under which settings.
function caption({firsts, given, wanted}) {
  const typed = given ? `, given what you typed: ${quotedText(given)}` : '';
  return `Share: the odds of ${firsts ? 'its first piece' : 'what sets it apart'}, ${heated(wanted)}${without(wanted)}${typed}.`;
}

// Banned tokens have no share: the odds are renormalised without them.
const without = ({banned = 0}) => (banned ? `, without ${formatCount(banned, 'banned token')}` : '');

function heated({temperature = 1, top_p: topP = 1}) {
  if (temperature === 1 && topP >= 1) return 'as the model gives them';
  if (temperature <= 0) return 'at temperature 0: the likeliest is certain';
  return [`at temperature ${temperature}`, topP < 1 ? `top-p ${topP}` : ''].filter(Boolean).join(', ');
}

export const coverageCaption = ({given, wanted}) =>
  (given ? `of what could come next, given ${quotedText(given)}` : 'of what the model thinks could come next') + without(wanted);

export const coverageSubject = count => (count === 1 ? 'This one holds' : `These ${count} hold`);

export function describePiece(row, piece) {
  const kind = row.raw ? ' · raw odds' : '';
  return `${quotedText(piece.text)} ${formatPercent(piece.odds)} after what stands before it · up to here ${formatPercent(piece.upTo)} · ` +
    `whole row ${formatPercent(row.path)}${kind}`;
}

export const describeOther = other => `${quotedText(other.text)} ${formatPercent(other.odds)} · none of the rows begins with it`;

// How far the text is read, or how deep the rows of a view that still grows are.
export function progressSentence(reading, growing, asked) {
  if (reading) return `Reading: ${formatNumber(reading[0])} of ${formatCount(reading[1], 'token')}`;
  const lengths = growing ? growing.filter(row => !row.extra && !row.ended).map(row => row.branch.ids.length - Number(row.healed)) : [];
  if (!lengths.length) return '';
  const deep = Math.max(0, Math.min(...lengths));
  return !asked.until || asked.until === 'tokens' ? `Thinking, ${deep} of ${asked.depth} deep` : `Thinking, ${deep} deep`;
}

// What there is to say of the whole, while nothing is pointed at.
export function summarySentence({state, note, reading}, drawn, seenFrom) {
  if (state === 'error') return note || 'There are no branches for this text.';
  if (state === 'paused') return note || 'Paused: no branches are looked for until you go on.';
  if (state === 'thinking' && !drawn.rows.length && !note) return reading ? 'Your text is read first.' : 'Looking ahead …';
  const from = seenFrom ? `The model reads from character ${formatNumber(seenFrom + 1)} on.` : '';
  return [from, note || (drawn.count ? `${caption(drawn)} ${PLAIN_HINT}` : '')].filter(Boolean).join(' ');
}

// The meter's figures, each as [figure, what it is].
export function costFigures({cost, alone}, ahead) {
  return [
    [formatCount(cost.passes, 'pass', 'passes'), cost.passes ? 'for this view' : 'for this view: all of it was known'],
    [formatCount(cost.tokens, 'token'), alone ? `read, where one request a branch reads ${formatNumber(alone)}` : 'read'],
    [cost.seconds < 1 ? `${formatNumber(cost.seconds * 1000)} ms` : `${cost.seconds.toFixed(1)} s`, 'in all'],
    ...(ahead ? [[formatCount(ahead, 'token'), 'read ahead so far']] : []),
  ];
}

export function announcementSentence({count, coverage, rows}) {
  const beginnings = rows.map(row => row.pieces.slice(0, 3).map(piece => visibleText(piece.text)).join('') || 'end');
  return `${coverageSubject(count)} ${formatPercent(coverage)}: ${beginnings.join('; ')}`;
}
