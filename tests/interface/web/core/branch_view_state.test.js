import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  INITIAL_STATE, choiceAt, describe, isBeforeChange, isChoosable, isCurrent, isInert, isPrefetched, isShownViewOld, isStale, leavesOutOthers, noteOf, reduce,
} from '../../../../interface/web/core/branch_view_state.js';
import {GUESS_FIRST, NEW_ROWS_COMING, REFUSAL, TAB_LEADS_ON, announcementSentence} from '../../../../interface/web/core/branch_sentences.js';
import {branchOf, likelyView, pathOf, viewOf} from '../../../support/scripts/views.js';

const SETTINGS = {k: 5, depth: 5, mode: 'likely', until: 'tokens'};
const show = (revision, view, more = {}) => ({type: 'show', detail: {revision, view, ...more}});
const run = (events, state = INITIAL_STATE) => events.reduce(reduce, state);
const settled = (revision = 1, view = likelyView()) => run([{type: 'settings', settings: SETTINGS}, show(revision, view)]);
const ids = state => state.drawn.rows.map(row => row.ids);
const pinned = (first = 3, depth = 4) => branchOf([first, ...Array(depth - 1).fill(7)], () => 0);

function freeze(value) {
  if (value instanceof Set || typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}

test('a settled view is drawn, is announced, and says its revision', () => {
  const state = settled(4);
  assert.deepEqual([state.expectedRevision, state.rowsRevision, state.status.state], [4, 4, 'settled']);
  assert.equal(state.drawn.rows.length, 5);
  assert.ok(state.drawn.rows.every(row => row.revision === 4 && !isInert(state, row)));
  assert.match(state.announcement, /^These 5 hold /);
  assert.equal(isStale(state) || isShownViewOld(state), false);
});

test('a growing view is not announced', () => {
  const state = run([show(1, likelyView(), {state: 'thinking'})]);
  assert.deepEqual([state.announcement, state.status.state, state.shown.growing], ['', 'thinking', true]);
});

test('a growing view without any row leaves the rows as they are, unless it tells of a word to steer by', () => {
  const before = settled(1), empty = {...likelyView(2), branches: []}, word = {word: 'sea', within: 5, low: 0, high: 1};
  const state = run([show(2, empty, {state: 'thinking'})], before);
  assert.deepEqual([ids(state), state.rowsRevision, isStale(state), isInert(state, state.drawn.rows[0])], [ids(before), 1, true, true]);
  assert.deepEqual(ids(run([show(2, {...empty, word}, {state: 'thinking'})], before)), []);
  assert.deepEqual(ids(run([show(2, empty, {state: 'settled'})], before)), []);
});

test('a view without a state is settled, and no view without a state is thinking', () => {
  assert.equal(run([show(1, likelyView())]).status.state, 'settled');
  assert.equal(run([show(1, null)]).status.state, 'thinking');
});

test('a view of an older revision than the expected one changes nothing', () => {
  const state = run([{type: 'expect', revision: 3}], settled(1));
  assert.equal(reduce(state, show(2, likelyView(2))), state);
});

test('an expected revision makes the rows of the older one stale and inert', () => {
  const state = run([{type: 'ahead', ready: 2, keys: ['1'], tokens: 9}, {type: 'expect', revision: 2}], settled(1));
  assert.ok(isStale(state) && isShownViewOld(state) && isInert(state, state.drawn.rows[0]));
  assert.deepEqual([state.ahead.ready, state.ahead.keys.size, state.ahead.tokens], [0, 0, 9]);
  assert.deepEqual([state.rowsRevision, state.status], [1, {state: 'thinking'}]);
});

test('it is known whether old rows are those of another text, or of the same one before a change beside it', () => {
  const expect = (revision, textChanged) => ({type: 'expect', revision, textChanged});
  assert.equal(run([expect(2, false)], settled(1)).textChanged, false, 'a ban');
  assert.equal(run([expect(2, true)], settled(1)).textChanged, true);
  assert.equal(run([{type: 'expect', revision: 2}], settled(1)).textChanged, true);
  for (const both of [[true, false], [false, true]]) assert.equal(run(both.map((changed, index) => expect(2 + index, changed)), settled(1)).textChanged, true);
  assert.equal(run([expect(2, true), show(2, likelyView(2)), expect(3, false)], settled(1)).textChanged, false);
  assert.equal(run([expect(2, false), expect(2, true)], settled(1)).textChanged, false, 'the same revision has the same text');
  assert.equal(run([show(2, null, {pinned: pinned()}), expect(3, false)], settled(1)).textChanged, true, 'a row was accepted');
});

test('to expect the present revision again keeps what was prefetched', () => {
  const state = run([{type: 'ahead', ready: 1, keys: ['1']}, {type: 'expect', revision: 1}], settled(1));
  assert.deepEqual([state.ahead.ready, state.ahead.keys.size, state.expectedRevision], [1, 1, 1]);
  assert.equal(run([{type: 'expect', revision: 0}], settled(1)).expectedRevision, 1);
});

test('nothing is stale where there are no rows', () => {
  assert.equal(isStale(run([{type: 'expect', revision: 2}])), false);
});

test('an empty text has no rows, and its revision is that of the rows', () => {
  const state = run([show(2, null, {state: 'empty'})], settled(1));
  assert.deepEqual([state.drawn.rows, state.shown, state.rowsRevision, state.ahead.ready], [[], null, 2, 0]);
  const entered = run([{type: 'status', state: 'empty'}], settled(1));
  assert.deepEqual([entered.drawn.rows, entered.shown, entered.status.state], [[], null, 'empty']);
});

test('an empty text with a stored view shows it', () => {
  const state = run([show(1, likelyView(), {state: 'empty', stored: true})]);
  assert.deepEqual([state.drawn.rows.length, state.shown.stored, state.status.state], [5, true, 'empty']);
});

test('a pause keeps the rows and what was read', () => {
  const reading = run([show(1, null, {state: 'thinking', reading: [1, 2]})]);
  assert.deepEqual(run([{type: 'status', state: 'paused', note: 'Why.'}], reading).status, {state: 'paused', note: 'Why.', reading: [1, 2]});
  assert.equal(run([{type: 'status', state: 'paused'}], settled()).drawn.rows.length, 5);
});

test('a pause that a person asks for is announced once', () => {
  const paused = run([{type: 'status', state: 'paused'}], settled());
  assert.equal(paused.announcement, 'Branching is paused. “Go on”, or Alt+P, continues it.');
  assert.equal(run([{type: 'status', state: 'paused', note: 'Why.'}], settled()).announcement, settled().announcement);
});

test('a pause is not announced again over what was announced since, until branching goes on', () => {
  const paused = run([{type: 'status', state: 'paused'}], settled(1)), changed = [{type: 'expect', revision: 2}, {type: 'status', state: 'paused'}];
  assert.equal(run([{type: 'refuse'}, ...changed], paused).announcement, REFUSAL);
  assert.equal(run([confirm('undone', 'x'), ...changed], paused).announcement, 'Undone: “x”. Branching is paused. “Go on”, or Alt+P, continues it.');
  assert.equal(run([confirm('resumed'), {type: 'status', state: 'settled'}, {type: 'status', state: 'paused'}], paused).announcement,
    'Branching is paused. “Go on”, or Alt+P, continues it.');
});

test('settings draw the same view anew', () => {
  const state = run([{type: 'settings', settings: {...SETTINGS, k: 2, depth: 1}}], settled());
  assert.deepEqual([state.drawn.rows.length, state.drawn.rows[0].ids.length], [2, 1]);
  assert.equal(state.rowsRevision, 1);
});

test('a pinned row takes the place of the last row of the older view, above the others, until the next view', () => {
  const before = settled(1), state = run([show(2, null, {pinned: pinned()})], before);
  assert.deepEqual(ids(state), [pinned().ids, ...ids(before).slice(0, -1)]);
  assert.deepEqual(state.drawn.rows.map(row => row.revision), [2, 1, 1, 1, 1]);
  assert.deepEqual(state.drawn.rows.map(row => isInert(state, row)), [false, true, true, true, true]);
  assert.deepEqual([state.rowsRevision, state.pinnedSince.revision], [2, 2]);
  const next = run([show(2, likelyView(2), {pinned: pinned()})], state);
  assert.equal(next.pinnedSince, null);
  assert.deepEqual([next.drawn.rows.length, next.drawn.rows[0].pinned, next.drawn.rows[0].extra], [3, true, true]);
});

test('a pinned row is drawn whole if no view is known', () => {
  assert.deepEqual(ids(run([show(1, null, {pinned: pinned()})])), [pinned().ids]);
});

test('a row pinned with the shown view is not pinned again', () => {
  const view = run([show(1, likelyView(), {pinned: pinned()})]);
  assert.equal(run([show(1, null, {pinned: pinned()})], view).pinnedSince, null);
});

test('the next view of a revision keeps what was prefetched, that of a newer one does not', () => {
  const state = run([{type: 'ahead', ready: 3, keys: ['1', '2'], tokens: 7}], settled(1));
  assert.equal(run([show(1, likelyView())], state).ahead.ready, 3);
  const newer = run([show(2, likelyView())], state);
  assert.deepEqual([newer.ahead.ready, newer.ahead.keys.size, newer.ahead.tokens, newer.rowsRevision], [0, 0, 7, 2]);
  assert.equal(run([{type: 'ahead', ready: 0, keys: []}], state).ahead.tokens, 7);
});

test('a piece is prefetched where its tokens are among the keys, unless its row is inert', () => {
  const before = settled(1), [row] = before.drawn.rows;
  const state = run([{type: 'ahead', ready: 1, keys: [row.ids.slice(0, 2).join(' ')]}], before);
  assert.deepEqual(row.pieces.map(piece => isPrefetched(state, row, piece)), [false, true, false, false, false]);
  const expecting = {...state, expectedRevision: 2};
  assert.equal(isPrefetched(expecting, row, row.pieces[1]), false);
});

test('other beginnings open and close, and only where there are some', () => {
  const open = run([{type: 'toggleOthers'}], settled());
  assert.deepEqual([open.othersOpen, reduce(open, {type: 'toggleOthers'}).othersOpen], [true, false]);
  assert.equal(run([{type: 'toggleOthers'}]).othersOpen, false);
  assert.equal(run([show(2, viewOf([[1], [2]], {k: 2, depth: 1, rest: 0}))], open).othersOpen, false);
  assert.equal(run([show(2, likelyView())], open).othersOpen, true);
});

test('the description of the pointed button replaces the summary', () => {
  const target = {branch: 1, piece: 2}, state = run([{type: 'point', target}], settled()), row = state.drawn.rows[1];
  const found = describe(state, target);
  assert.equal(found.text, row.pieces.slice(0, 3).map(piece => piece.text).join(''));
  assert.deepEqual([found.id, found.own, found.bannable], [row.ids[2], row.pieces[2].text, true]);
  assert.deepEqual(noteOf(state), {sentence: found.sentence, progress: '', own: found.own, isPart: false, bannable: true, editable: true});
  assert.match(found.sentence, /after the text before it/);
});

test('the note says whether the token that can be banned is only a part of a word', () => {
  const parts = (before, texts, {healed = false, given = ''} = {}) => {
    const plain = viewOf([pathOf([3], texts.length)], {k: 1, depth: texts.length, healed});
    const pieces = texts.map((text, index) => ({text, tokens: index + 1, ends: Number(!/^\p{L}/u.test(texts[index + 1] ?? ' '))}));
    const state = settled(1, {...plain, given, branches: [{...plain.branches[0], pieces}]}), at = {...state, shown: {...state.shown, before}};
    return pieces.map((_, piece) => noteOf(run([{type: 'point', target: {branch: 0, piece}}], at)).isPart);
  };
  assert.deepEqual(parts('The', [' light', 'house', ' was', '.']), [true, true, false, false]);
  assert.deepEqual(parts('The lig', ['ht', 'house', ' was']), [true, true, false]);
  assert.deepEqual(parts('The lig', ['hthouse', ' was'], {healed: true, given: 'lig'}), [false, false], 'the typed letters belong to the token');
  assert.deepEqual(parts('海', ['の', '家']), [false, false]);
});

test('the first announcement of grey text says how to leave the box, also where there was none when the box was entered', () => {
  const {tabAnnouncement} = run([{type: 'announceTab', text: ''}, {type: 'announceTab', text: ' sea'}], settled());
  assert.equal(tabAnnouncement, 'Tab inserts “sea”; Esc, then Tab, leaves the text box.');
});

test('where Tab leads on, that is announced of grey text alone, and later what Tab inserts and how to leave the box', () => {
  const grey = (text, leadsOn) => ({type: 'announceTab', text, leadsOn}), passing = run([grey(null), grey(' sea', true)], settled());
  assert.equal(passing.tabAnnouncement, TAB_LEADS_ON);
  assert.equal(run([grey(' sea', false)], passing).tabAnnouncement, 'Tab inserts “sea”; Esc, then Tab, leaves the text box.');
  assert.equal(run([grey('', false)], passing).tabAnnouncement, '', 'the grey text is hidden');
  assert.equal(run([grey('', true)], settled()).tabAnnouncement, '');
});

test('what Tab inserts is announced once for the same grey text', () => {
  const grey = text => ({type: 'announceTab', text}), first = run([grey(' sea')], settled());
  assert.equal(first.tabAnnouncement, 'Tab inserts “sea”; Esc, then Tab, leaves the text box.');
  assert.equal(run([show(1, likelyView()), grey(' sea')], first).tabAnnouncement, first.tabAnnouncement, 'the same rows again: nothing new');
  const grown = run([show(1, likelyView()), grey(' sea and')], first);
  assert.equal(grown.tabAnnouncement, 'Tab also inserts “and”.', 'it has grown');
  assert.equal(run([grey(' sea and')], grown).tabAnnouncement, grown.tabAnnouncement);
  assert.equal(run([grey(' sea and the')], grown).tabAnnouncement, 'Tab also inserts “the”.');
  assert.match(run([{type: 'point', target: {branch: 0, piece: 0}}, grey(' sea and')], first).tabAnnouncement, /^Tab inserts “sea and”/, 'what is pointed at is said whole');
  assert.equal(run([show(1, null, {state: 'error'})], first).tabAnnouncement, '');
  const other = run([show(2, likelyView()), grey(' ship')], first);
  assert.equal(other.tabAnnouncement, 'Tab inserts “ship”.');
  assert.equal(run([show(3, likelyView()), grey(''), show(4, likelyView()), grey(' ship')], other).tabAnnouncement, 'Tab inserts “ship”.');
  const away = run([grey(null)], other);
  assert.equal(away.tabAnnouncement, '', 'the focus is elsewhere');
  assert.equal(run([grey(' ship')], away).tabAnnouncement, 'Tab inserts “ship”.', 'and has come back');
  assert.match(run([grey(null), grey(' sea')], INITIAL_STATE).tabAnnouncement, /leaves the text box/, 'the first time, how to leave the box too');
});

test('settings that leave the recorded example as it is are not announced', () => {
  const stored = run([{type: 'settings', settings: SETTINGS}, show(1, likelyView(), {stored: true})]);
  const withRows = k => run([{type: 'settings', settings: {...SETTINGS, k}}], stored);
  assert.deepEqual([withRows(8).announcement, withRows(8).unannounced], [stored.announcement, false]);
  assert.deepEqual([withRows(2).announcement, withRows(2).unannounced], ['', true]);
});

test('what a person has done is announced before what Tab inserts, and not again with the rows', () => {
  const confirmed = run([{type: 'confirm', kind: 'inserted', text: ' sea'}, show(2, likelyView(), {state: 'thinking'})], settled());
  assert.doesNotMatch(confirmed.announcement, /Inserted/);
  const both = run([{type: 'announceTab', text: ' and'}], confirmed);
  assert.deepEqual([both.announcement, both.tabAnnouncement.slice(0, 18)], ['Inserted: “sea”.', 'Tab inserts “and”;']);
  assert.match(run([show(2, likelyView())], both).announcement, /^These 5 hold/);
});

test('a piece of a word that was begun is described as a part of the whole word', () => {
  const view = likelyView();
  view.branches[0].pieces[0].text = 'house';
  const state = run([{type: 'show', detail: {revision: 1, view, state: 'settled', before: 'The light'}}]);
  const row = state.drawn.rows.findIndex(({pieces}) => pieces[0].text === 'house');
  assert.match(describe(state, {branch: row, piece: 0}).sentence, /token “house”, a part of “lighthouse”/i);
});

test('a row that continues a word is announced as the whole word, also where it was changed', () => {
  const view = likelyView();
  view.branches[0].pieces[0].text = 'house';
  const {ids: [first]} = view.branches[0], edit = {row: [first], before: [], text: 'house'};
  view.branches[0].edited = [0, 1];
  const state = run([{type: 'follow', edit}, {type: 'show', detail: {revision: 1, view, state: 'settled', before: 'The light'}}]);
  assert.match(state.announcement, /^Changed: row \d\. .*[:;] lighthouse w/);
});

test('buttons that are missing, hidden or of an older text have no description', () => {
  const state = settled();
  assert.equal(describe(state, null), null);
  assert.equal(describe(state, {branch: 9, piece: 0}), null);
  assert.equal(describe(state, {branch: 0, piece: 9}), null);
  assert.equal(describe(state, {other: 0}), null, 'the list is closed');
  const open = run([{type: 'toggleOthers'}], state);
  assert.ok(describe(open, {other: 0}).bannable);
  assert.equal(describe(open, {other: 99}), null);
  const old = run([{type: 'expect', revision: 2}], open);
  assert.deepEqual([describe(old, {other: 0}), describe(old, {branch: 0, piece: 0})], [null, null]);
});

test('a pinned row without a view is described, and nothing of it is healed', () => {
  const state = run([show(1, null, {pinned: pinned()})]);
  assert.equal(describe(state, {branch: 0, piece: 0}).own, pinned().pieces[0].text);
});

test('nothing of a stored view can be banned', () => {
  const state = run([show(1, likelyView(), {state: 'empty', stored: true})]);
  assert.equal(describe(state, {branch: 0, piece: 0}).bannable, false);
});

test('the pointed button is dropped when it disappears, and kept otherwise', () => {
  const state = run([{type: 'point', target: {branch: 4, piece: 4}}], settled());
  assert.deepEqual(run([show(2, likelyView())], state).pointed, {branch: 4, piece: 4});
  assert.equal(run([show(2, likelyView(2))], state).pointed, null);
  const other = run([{type: 'point', target: {other: 0}}], settled());
  assert.deepEqual(run([show(2, likelyView())], other).pointed, {other: 0});
  assert.equal(run([show(2, viewOf([[1]], {k: 1, depth: 1, rest: 0}))], other).pointed, null);
});

test('a beginning can be accepted where it has a text and is no ending', () => {
  const cases = [undefined, {text: null, end: false}, {text: ' a', end: true}, {text: ' a', end: false}, {text: '', end: false}];
  assert.deepEqual(cases.map(isChoosable), [false, false, false, true, true]);
});

test('a choice names its revision, its text and its ids', () => {
  const state = settled(3), choice = choiceAt(state, {branch: 1, piece: 1}), row = state.drawn.rows[1];
  assert.deepEqual([choice.revision, choice.branch, choice.ids], [3, 1, row.ids.slice(0, 2)]);
  assert.equal(choice.text, row.pieces[0].text + row.pieces[1].text);
  const other = choiceAt(state, {other: 1});
  assert.deepEqual([other.revision, other.branch, other.token, other.ids], [3, null, 1, state.drawn.others[1].ids]);
  assert.equal(other.healed, false);
  for (const target of [null, {branch: 7, piece: 0}, {branch: 0, piece: 7}, {other: 99}]) assert.equal(choiceAt(state, target), null);
});

test('a choice of another beginning is healed if the view is', () => {
  const state = settled(1, viewOf([[1, 2], [3, 4]], {k: 2, depth: 2, healed: true}));
  assert.equal(choiceAt(state, {other: 0}).healed, true);
});

test('a choice is current until a newer revision is expected', () => {
  const state = settled(1), choice = choiceAt(state, {branch: 0, piece: 0});
  assert.equal(isCurrent(state, choice), true);
  assert.equal(isCurrent(run([{type: 'expect', revision: 2}], state), choice), false);
});

test('a refusal is shown and announced, and then the note is as before', () => {
  const before = settled(), state = run([{type: 'refuse'}], before);
  assert.deepEqual(noteOf(state), {sentence: REFUSAL, progress: '', bannable: false, editable: false});
  assert.equal(state.announcement, REFUSAL);
  const after = run([{type: 'endRefusal'}], state);
  assert.deepEqual([after.refusal, after.announcement, noteOf(after)], [null, '', noteOf(before)]);
});

test('every refusal is counted, so that two in a row change what is drawn twice', () => {
  assert.equal(run([{type: 'refuse'}, {type: 'refuse'}, {type: 'endRefusal'}], settled()).refusals, 2);
});

test('a refusal says the reason that is given, and is announced again when it is repeated', () => {
  const state = run([{type: 'refuse', because: 'While text is selected, no rows are computed.'}], settled());
  assert.equal(noteOf(state).sentence, 'While text is selected, no rows are computed.');
  assert.equal(state.announcement, 'While text is selected, no rows are computed.');
  const ended = run([{type: 'endRefusal'}], state);
  assert.equal(ended.announcement, '');
  assert.equal(run([{type: 'refuse', because: 'While text is selected, no rows are computed.'}], ended).announcement, state.announcement);
});

test('a growing view of the present text says how deep it is; an older one does not', () => {
  const growing = run([{type: 'settings', settings: SETTINGS}, show(1, likelyView(), {state: 'thinking'})]);
  assert.equal(noteOf(growing).progress, 'Computing the odds …');
  assert.equal(noteOf(run([{type: 'expect', revision: 2}], growing)).progress, '');
  assert.equal(noteOf(run([show(2, null, {reading: [3, 10]})], growing)).progress, 'Reading: 3 of 10 tokens');
  assert.equal(noteOf(settled()).progress, '');
});

test('while other rows are computed, the note of those before a change claims no setting of theirs', () => {
  const changed = (settings, state = settled()) => run([{type: 'settings', settings: {...SETTINGS, ...settings}}, {type: 'expect', revision: 1}], state);
  for (const settings of [{k: 6}, {mode: 'forks'}, {avoid: 'sea'}, {towards: 'sea'}]) {
    assert.deepEqual(noteOf(changed(settings)), {sentence: NEW_ROWS_COMING, progress: '', bannable: false, editable: false, ofRows: true}, JSON.stringify(settings));
  }
  const otherOdds = run([{type: 'settings', settings: {...SETTINGS, odds: 'words'}}, {type: 'expect', revision: 1}], settled());
  assert.equal(noteOf(otherOdds).sentence, 'New rows are being computed, with odds of words.', 'the view may have changed alone');
  assert.match(noteOf(changed({temperature: 0.5})).sentence, /at temperature 0.5/, 'the odds of the same rows are known');
  const ban = run([{type: 'settings', settings: {...SETTINGS, banned: 1}}, {type: 'expect', revision: 2, textChanged: false}], settled());
  assert.equal(noteOf(ban).sentence, NEW_ROWS_COMING);
  assert.notEqual(noteOf(run([{type: 'expect', revision: 2}], settled())).sentence, NEW_ROWS_COMING, 'another text');
  assert.match(noteOf(run([show(1, likelyView(6))], changed({k: 6}))).sentence, /^A row’s share is/);
});

test('rows from before a ban or another word to avoid may leave out others, and those from before another setting do not', () => {
  const after = settings => leavesOutOthers(run([{type: 'settings', settings: {...SETTINGS, ...settings}}, {type: 'expect', revision: 1}], settled()));
  assert.deepEqual([after({avoid: 'sea'}), after({k: 6}), after({mode: 'forks'}), leavesOutOthers(settled())], [true, false, false, false]);
  assert.equal(leavesOutOthers(run([{type: 'expect', revision: 2, textChanged: false}], settled())), true);
  assert.equal(leavesOutOthers(run([{type: 'expect', revision: 2}], settled())), false, 'another text');
});

test('rows that only have to grow say how long they will be', () => {
  const longer = run([{type: 'settings', settings: {...SETTINGS, depth: 9}}, {type: 'expect', revision: 1}], settled());
  assert.equal(noteOf(longer).progress, 'Growing: 5 of 9 tokens');
  assert.match(noteOf(longer).sentence, /^A row’s share is/);
});

test('no event changes the state that it is given', () => {
  const events = [
    show(2, likelyView()), show(2, null, {pinned: pinned()}), show(3, null, {state: 'empty'}), {type: 'expect', revision: 4},
    {type: 'settings', settings: SETTINGS}, {type: 'status', state: 'paused'}, {type: 'ahead', ready: 1, keys: ['1']},
    {type: 'toggleOthers'}, {type: 'point', target: {branch: 0, piece: 0}}, {type: 'refuse'}, {type: 'endRefusal'},
  ];
  let state = freeze(settled(1));
  for (const event of events) state = freeze(reduce(state, freeze(event)));
  assert.equal(state.expectedRevision, 4);
});

const veil = veiled => ({type: 'veil', veiled});

test('behind the veil nothing is drawn, announced or chosen, whatever comes', () => {
  const later = [show(2, null, {state: 'thinking', pinned: pinned()}), show(2, likelyView(), {state: 'thinking'}), show(3, likelyView())];
  let state = run([veil(true)], settled());
  for (const event of [{type: 'toggleOthers'}, {type: 'point', target: {branch: 0, piece: 0}}, ...later, {type: 'settings', settings: SETTINGS}]) {
    state = reduce(state, event);
    assert.deepEqual([state.drawn.rows, state.drawn.others, state.drawn.count, state.announcement, state.othersOpen], [[], [], 0, '', false], event.type);
    assert.equal(choiceAt(state, {branch: 0, piece: 0}), null);
    assert.equal(isStale(state), false);
  }
  assert.equal(noteOf(state).sentence, GUESS_FIRST);
  assert.equal(noteOf(run([{type: 'refuse', because: 'Why.'}], state)).sentence, 'Why.');
});

test('without the veil everything that came meanwhile is drawn at once, and announced after the result of the guess', () => {
  const state = run([veil(true), show(2, likelyView()), veil(false)], settled());
  assert.deepEqual(ids(state), ids(settled(2)));
  assert.deepEqual([state.announcement, reduce(state, {type: 'announceRows'}).announcement], ['', settled(2).announcement]);
  assert.equal(run([veil(true), show(2, likelyView()), veil(false), veil(true), {type: 'announceRows'}], settled()).announcement, '');
  const growing = run([veil(true), show(2, likelyView(), {state: 'thinking'}), veil(false)], settled());
  assert.deepEqual([growing.drawn.rows.length, growing.announcement], [5, '']);
  assert.equal(run([veil(true), {type: 'expect', revision: 2}, {type: 'status', state: 'settled'}, veil(false)], settled()).announcement, '');
});

test('a veil that is there already changes nothing', () => {
  const state = settled();
  assert.equal(reduce(state, veil(false)), state);
  const veiled = reduce(state, veil(true));
  assert.equal(reduce(veiled, veil(true)), veiled);
});

test('behind the veil an error, a pause and an empty text say what they say', () => {
  const noteAt = (name, note) => noteOf(run([veil(true), {type: 'status', state: name, note}], settled())).sentence;
  assert.equal(noteAt('error', 'It failed.'), 'It failed.');
  assert.equal(noteAt('paused', 'Paused here.'), 'Paused here.');
  assert.equal(noteAt('thinking'), GUESS_FIRST);
  assert.equal(noteAt('settled', 'Some note.'), GUESS_FIRST);
});

const ROWS = announcementSentence(settled().drawn);
const confirm = (kind, text) => ({type: 'confirm', kind, text});
const heat = temperature => ({type: 'settings', settings: {...SETTINGS, temperature}}), REST = {type: 'announceRows'};

test('rows that settings change are announced once, when the settings rest, and until then nothing is said of the rows before', () => {
  const dragged = [0.9, 0.8, 0.7].reduce((before, temperature) => {
    const state = reduce(before, heat(temperature));
    assert.equal(state.announcement, '');
    return state;
  }, settled());
  const state = reduce(dragged, REST);
  assert.equal(state.announcement, announcementSentence(state.drawn));
  assert.notEqual(state.announcement, ROWS);
  assert.equal(reduce(state, REST).announcement, state.announcement);
});

test('rows of settings that need a request are announced when they are complete and the settings rest', () => {
  const asked = [heat(0.5), {type: 'expect', revision: 1}], [early, late] = [[show(1, likelyView()), REST], [REST, show(1, likelyView())]];
  for (const [first, second] of [early, late]) {
    const waiting = run([...asked, first], settled());
    assert.equal(waiting.announcement, '');
    const state = reduce(waiting, second);
    assert.equal(state.announcement, announcementSentence(state.drawn));
  }
});

test('settings that are the same change nothing that is announced', () => {
  assert.equal(run([{type: 'settings', settings: {...SETTINGS}}, REST], settled()).announcement, ROWS);
  assert.equal(run([{type: 'refuse'}, {type: 'endRefusal'}, REST], settled()).announcement, '');
});

test('what is announced while settings change is said again before the rows, so that nothing is lost', () => {
  const rows = announcementSentence(run([heat(0.5)], settled()).drawn), said = (...events) => run([heat(0.5), ...events, REST], settled()).announcement;
  assert.equal(said({type: 'refuse'}), `${REFUSAL} ${rows}`);
  assert.equal(said(confirm('banned', ' sea'), {type: 'expect', revision: 2}, show(2, likelyView())), `Banned: “sea”. ${rows}`);
  assert.equal(said({type: 'status', state: 'paused'}), `Branching is paused. “Go on”, or Alt+P, continues it. ${rows}`);
});

test('a ban is announced once with complete rows, also where Tab is announced before the settings rest', () => {
  const undone = [confirm('unbanned', ' sea'), heat(0.5), {type: 'expect', revision: 2}], tab = {type: 'announceTab', text: ' and'};
  const said = run([...undone, show(2, likelyView()), tab], settled());
  assert.equal(said.announcement, `Undone: the ban of “sea”. ${announcementSentence(said.drawn)}`);
  assert.equal(reduce(said, REST).announcement, said.announcement);
  const early = run([...undone, show(2, likelyView(3), {state: 'thinking'}), tab], settled());
  assert.equal(early.announcement, 'Allowing “sea” again: the rows follow.', 'rows that grow are announced later, alone');
  assert.equal(run([REST, show(2, likelyView())], early).announcement, announcementSentence(run([show(2, likelyView())], early).drawn));
});

test('rows that are no longer drawn are no longer announced', () => {
  assert.equal(run([show(2, null, {state: 'empty'})], settled()).announcement, '');
  assert.equal(run([show(2, likelyView(3), {state: 'thinking'})], settled()).announcement, '');
  assert.equal(run([{type: 'expect', revision: 2}], settled()).announcement, ROWS, 'they are still drawn');
});

test('while a change is computed its row shows the new text and takes no choice', () => {
  const before = settled(1), {branch, pieces} = before.drawn.rows[2], edit = {row: branch.ids, before: branch.ids.slice(0, pieces[0].tokens), text: ' new'};
  const waiting = run([{type: 'follow', edit}, {type: 'status', state: 'thinking'}], before), row = waiting.drawn.rows[2];
  assert.deepEqual(row.pieces.map(({text}) => text), [pieces[0].text, ' new']);
  assert.ok(row.changing && isInert(waiting, row) && !isCurrent(waiting, choiceAt(waiting, {branch: 2, piece: 0})));
  assert.deepEqual([0, 1, 3, 4].map(index => waiting.drawn.rows[index]), [0, 1, 3, 4].map(index => before.drawn.rows[index]));
  for (const event of [{type: 'status', state: 'error'}, show(1, likelyView()), {type: 'follow', edit: null}]) {
    const ended = run([event], waiting);
    assert.deepEqual(ended.drawn.rows[2], before.drawn.rows[2], 'a change that fails or is undone leaves the row');
  }
});

test('while rows grow, those that a change will replace show the new text, as far as they are computed', () => {
  const view = likelyView(), {ids: row} = view.branches[2], edits = [{row, before: row.slice(0, 1), text: ' new'}], growing = {state: 'thinking', edits};
  const textsAt = (index, shown) => shown.drawn.rows[index].pieces.map(({text}) => text);
  const whole = run([show(1, likelyView())]), first = textsAt(2, whole)[0];
  const longer = likelyView(5, 7), cut = size => ({...view, branches: view.branches.map(branch => branchOf(branch.ids.slice(0, size), () => 0))});
  for (const grown of [cut(1), cut(3), view, longer]) {
    const state = run([show(1, grown, growing)]);
    assert.deepEqual(textsAt(2, state), [first, ' new']);
    assert.deepEqual(state.drawn.rows.map(({changing}) => Boolean(changing)), [false, false, true, false, false]);
  }
  const early = run([show(1, cut(1), {state: 'thinking', edits: [{row, before: row.slice(0, 2), text: ' new'}]})]);
  assert.deepEqual(textsAt(2, early), [first], 'what stands before the change is not computed yet');
  const stopped = run([show(1, cut(3), growing), {type: 'status', state: 'paused'}]);
  assert.equal(textsAt(2, stopped).length, 3, 'a row that is computed no further can be accepted as it is');
  const complete = run([show(1, view, {edits})]);
  assert.deepEqual(complete.drawn.rows.map(({changing}) => Boolean(changing)), Array(5).fill(false), 'a complete view has what the server made of the changes');
});

test('what a person has done is announced once, in one message with the rows that follow', () => {
  const waiting = run([confirm('inserted', ' the'), {type: 'expect', revision: 2}, confirm('inserted', ' sea'), {type: 'expect', revision: 3}], settled(1));
  assert.equal(waiting.announcement, ROWS);
  const state = run([show(3, likelyView(), {state: 'thinking'}), show(3, likelyView())], waiting);
  assert.equal(state.announcement, `Inserted: “the sea”. ${ROWS}`);
  assert.equal(run([show(3, likelyView())], state).announcement, state.announcement);
  assert.equal(run([confirm('undone', ' sea'), {type: 'expect', revision: 4}, show(4, likelyView())], state).announcement, `Undone: “sea”. ${ROWS}`);
});

test('what a person has done is announced alone where the rows are late, and then only the rows', () => {
  const late = {type: 'announceConfirmed'}, expect = {type: 'expect', revision: 2};
  for (const waits of [expect, {type: 'status', state: 'thinking'}]) {
    const state = run([confirm('banned', ' sea'), waits, late], settled(1));
    assert.equal(state.announcement, 'Banning “sea”: the rows follow.');
    assert.equal(run([show(2, likelyView())], state).announcement, ROWS);
    assert.equal(run([confirm('undone', 'x'), show(2, likelyView())], state).announcement, `Undone: “x”. ${ROWS}`);
  }
  const soon = run([confirm('banned', ' sea'), expect, show(2, likelyView())], settled(1));
  assert.equal(run([late], soon), soon);
});

test('rows that take long are announced as ones that are still computed, and when they come', () => {
  const late = run([confirm('banned', ' sea'), {type: 'expect', revision: 2}, {type: 'announceConfirmed'}, {type: 'announceWait'}], settled(1));
  assert.equal(late.announcement, 'The rows are still being computed.');
  const shown = run([show(2, likelyView())], late);
  assert.equal(shown.announcement, ROWS);
  assert.equal(run([{type: 'announceWait'}], shown), shown);
});

test('rows that come once more are not announced over what was announced since', () => {
  const hidden = run([confirm('hidden'), show(1, likelyView())], settled(1));
  assert.equal(hidden.announcement, 'Grey text hidden until the text changes.');
  const changed = run([show(1, likelyView(3), {state: 'thinking'}), show(1, likelyView())], hidden);
  assert.equal(changed.announcement, ROWS, 'other rows were seen in between');
});

test('where its rows are late, a word to steer by is announced as one that the rows are still to follow', () => {
  const late = run([confirm('towards', 'sea'), {type: 'expect', revision: 2}, {type: 'announceConfirmed'}], settled(1));
  assert.equal(late.announcement, 'Steering towards the word “sea”: the rows follow.');
  assert.ok(run([confirm('avoid', 'sea'), {type: 'expect', revision: 2}, {type: 'announceConfirmed'}], settled(1)).announcement.startsWith('Steering away from'));
});

test('where its rows are late, no step of a ban is announced as done', () => {
  const sentences = {
    banned: 'Banning “sea”:', rebanned: 'Banning “sea” again:', bannedAgain: 'Banning “sea” again:',
    allowed: 'Allowing “sea” again:', unbanned: 'Allowing “sea” again:', allowedAgain: 'Allowing “sea” again:',
  };
  for (const [kind, sentence] of Object.entries(sentences)) {
    const late = run([confirm(kind, ' sea'), {type: 'expect', revision: 2}, {type: 'announceConfirmed'}], settled(1));
    assert.equal(late.announcement, `${sentence} the rows follow.`);
  }
});

test('where its rows are late, the undo of a change of a row is announced as one that the rows are still to follow', () => {
  const late = run([confirm('unchanged', ' never'), {type: 'status', state: 'thinking'}, {type: 'announceConfirmed'}], settled(1));
  assert.equal(late.announcement, 'Undoing the change to “never”: the rows follow.');
  assert.equal(run([show(1, likelyView())], late).announcement, ROWS);
});

test('the same action is announced again, after an empty announcement', () => {
  const late = {type: 'announceConfirmed'}, first = run([confirm('inserted', ' sea'), {type: 'expect', revision: 2}, late], settled(1));
  assert.equal(first.announcement, 'Inserted: “sea”.');
  const again = run([confirm('inserted', ' sea'), {type: 'expect', revision: 3}], first);
  assert.equal(again.announcement, '');
  assert.equal(run([late], again).announcement, 'Inserted: “sea”.');
});

test('a refusal is announced after the actions before it, and both end with it', () => {
  const state = run([confirm('inserted', ' sea'), {type: 'expect', revision: 2}, {type: 'refuse', because: 'Not yet.'}], settled(1));
  assert.equal(state.announcement, 'Inserted: “sea”. Not yet.');
  assert.equal(run([{type: 'endRefusal'}], state).announcement, '');
  assert.equal(run([show(2, likelyView())], state).announcement, ROWS, 'the action is announced once');
});

test('where no rows follow, what a person has done is announced alone, or with the reason of a pause', () => {
  const ends = [show(2, null, {state: 'empty'}), {type: 'status', state: 'settled'}, show(2, null, {state: 'error'})];
  for (const end of ends) assert.equal(run([confirm('undone', 'x'), end], settled(1)).announcement, 'Undone: “x”.', JSON.stringify(end));
  assert.equal(run([confirm('hidden')], settled(1)).announcement, 'Grey text hidden until the text changes.');
  assert.equal(run([confirm('unbanned', ' isn'), {type: 'expect', revision: 2}, {type: 'status', state: 'paused'}], settled(1)).announcement,
    'Undone: the ban of “isn”. Branching is paused. “Go on”, or Alt+P, continues it.');
  assert.equal(run([confirm('restored', 'is'), {type: 'status', state: 'paused', note: 'While text is selected, no rows are computed.'}], settled(1)).announcement,
    'Undone: “is” is back. While text is selected, no rows are computed.');
});

test('nothing says that branching is paused after it goes on', () => {
  const paused = run([{type: 'status', state: 'paused'}], settled(1)), resumed = run([confirm('resumed')], paused);
  assert.equal(resumed.announcement, '');
  assert.equal(run([{type: 'status', state: 'settled'}], resumed).announcement, 'Branching goes on.');
  assert.equal(run([{type: 'expect', revision: 2}, show(2, likelyView())], resumed).announcement, `Branching goes on. ${ROWS}`);
});

test('the row of an undone change is found where it stands now, and nothing is said of it', () => {
  const {branch} = settled(1).drawn.rows[2], edit = {row: branch.ids, before: branch.ids.slice(0, 1), text: ' new'}, without = likelyView();
  without.branches = without.branches.filter(({ids}) => ids[0] !== branch.ids[0]);
  const undone = run([{type: 'follow', edit, undone: true}, {type: 'status', state: 'thinking'}], run([show(1, without)]));
  assert.ok(!undone.followedAt && undone.drawn.rows.every(({changing}) => !changing));
  const state = run([show(1, likelyView())], undone);
  assert.deepEqual([state.followedAt, state.announcement], [{line: 2, column: 1}, ROWS]);
  const gone = run([show(2, without)], state);
  assert.deepEqual([gone.followedAt, gone.announcement], [null, announcementSentence(gone.drawn)]);
});

test('while the change of a row is undone, the changed rows are said to be from before that', () => {
  const changed = likelyView(), [, , , last] = changed.branches, text = 'A row’s share is';
  last.edited = [1, 2];
  const edit = {row: [1, 2], before: last.ids.slice(0, 1), text: last.pieces[1].text};
  const undone = run([show(1, changed), {type: 'follow', edit, undone: true}, {type: 'status', state: 'thinking'}], settled());
  assert.deepEqual([isBeforeChange(undone), noteOf(undone).sentence], [true, NEW_ROWS_COMING]);
  const shown = run([show(1, likelyView())], undone);
  assert.deepEqual([isBeforeChange(shown), noteOf(shown).sentence.startsWith(text)], [false, true]);
  const redone = run([{type: 'follow', edit, redone: true}, {type: 'status', state: 'thinking'}], run([show(1, changed)], settled()));
  assert.equal(isBeforeChange(redone), false, 'the row that is computed says so itself');
});

test('a changed row is announced with its new position when it is shown, and once more when it is gone', () => {
  const changed = likelyView(), [, , , last] = changed.branches;
  last.edited = [1, 2];
  const edit = {row: [1, 2], before: last.ids.slice(0, 1), text: last.pieces[1].text}, asked = run([{type: 'follow', edit}], settled(1));
  const early = run([show(1, likelyView())], asked);
  assert.deepEqual([early.followedAt, early.announcement], [null, ROWS]);
  const state = run([show(1, changed)], early), {line, column} = state.followedAt;
  assert.deepEqual([state.drawn.rows[line].branch.ids, column], [last.ids, 1]);
  assert.equal(state.announcement, `Changed: row ${line + 1}. ${ROWS}`, 'its text is said once, among the rows');
  const redone = run([{type: 'follow', edit, redone: true}, show(1, changed)], early);
  assert.equal(redone.announcement, `Redone: the change to row ${line + 1}. ${ROWS}`);
  const dragged = run([heat(0.5), show(1, changed)], early), rested = run([REST], dragged).announcement;
  assert.match(rested, /^Changed: row \d\. These 5 hold/);
  assert.match(run([{type: 'status', state: 'paused'}], dragged).announcement, /^Changed: row \d is now “[^“]+”\. Branching is paused/, 'no rows follow');
  assert.equal(run([show(1, changed)], state).announcement, state.announcement);
  const gone = run([show(2, likelyView()), show(2, likelyView())], state);
  assert.equal(gone.announcement, `The row that you changed is gone. ${ROWS}`);
  const steered = run([{type: 'settings', settings: {...SETTINGS, towards: 'sea'}}, show(2, {...likelyView(), asked: {...likelyView().asked, towards: 'sea'}}), REST], state);
  assert.match(steered.announcement, /^The row that you changed is left out until the word to go towards is removed\. These/);
  assert.equal(run([{type: 'follow', edit: null}, show(2, likelyView())], state).announcement, state.announcement);
});
