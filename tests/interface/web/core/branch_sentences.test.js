import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as words from '../../../../interface/web/core/branch_sentences.js';

// Without what keeps figures on one line.
const said = text => text.replaceAll('\u00a0', ' ');

test('a share says what it is where it stands', () => {
  const label = (row, ...pieces) => said(words.shareLabel({share: {p: 0.15}, apart: 1, pieces, ...row}));
  assert.equal(label({ended: true}), '15 % chance that the text ends here');
  assert.equal(label({}, {ids: [1], ends: 1}), '15 % chance of this next token');
  assert.equal(label({}, {ids: [1], ends: 0}, {ids: [2], ends: 1}), '15 % chance of this beginning');
  assert.equal(label({}, {ids: [1, 2], ends: 1}), '15 % chance of this beginning');
  assert.equal(label({}), '15 % chance of this beginning');
  assert.deepEqual([label({}, {ids: [1], ends: 1, text: ' sea'}), label({}, {ids: [1], ends: 1, text: ','})], ['15 % chance of this next token, “sea”', '15 % chance of this next token, comma']);
  assert.equal(label({apart: 2, share: {p: 0.05, bound: true}}, {ids: [1], ends: 1, tokens: 1}, {ids: [2], ends: 1, tokens: 2}), '≤ 5 % chance of these first 2 tokens');
});

test('the tokens of a share are counted as they can be seen', () => {
  const label = (apart, ...tokens) => said(words.shareLabel({share: {p: 0.15}, apart, pieces: tokens.map(count => ({ids: [1, 2], ends: 1, tokens: count}))}));
  assert.equal(label(3, 2, 3, 4), '15 % chance of these first 2 tokens', 'a token that stands in the text already is not seen');
  assert.equal(label(3, 1, 2, 5), '15 % chance of these first 3 tokens', 'a character of three tokens is one button');
  assert.equal(label(2, 3, 4), '15 % chance of this beginning');
  assert.equal(label(4, 1, 3), '15 % chance of this whole row', 'an end token is no button');
});

test('an ending is explained with its odds', () => {
  assert.equal(said(words.endSentence({p: 0.12})), 'The text ends after this row, with a chance of 12 %: the model would write nothing more. Choosing this inserts nothing.');
  assert.equal(said(words.endSentence({p: 0.95}, true)), 'The text ends here, with a chance of 95 %: the model would write nothing more. Choosing this inserts nothing.');
});

test('the coverage sentence says how many branches there are and what they hold', () => {
  assert.deepEqual([words.coverageSubject(1, [{}]), words.coverageSubject(5, [{}])], ['This one holds', 'These 5 hold']);
  const beside = [{extra: true}, {}];
  assert.deepEqual([words.coverageSubject(1, beside), words.coverageSubject(5, beside)], ['The other one holds', 'The other 5 hold']);
  const cut = {cut: true, excludes: 'top-p 0.5'};
  assert.equal(words.coverageSubject(5, [{}, {}, cut, cut, cut]), '2 of these 5 hold', 'rows with 0 % hold nothing');
  assert.equal(words.coverageSubject(3, [{}, cut, cut]), '1 of these 3 holds');
  assert.equal(words.coverageSubject(3, [{extra: true}, {}, {}, cut]), '2 of the other 3 hold');
  assert.equal(words.coverageSubject(2, [{extra: true, ...cut}, {}, {}]), 'The other 2 hold');
  assert.equal(words.coverageSubject(1, [cut]), 'This one holds');
  assert.equal(words.coverageSubject(2, [cut, cut]), 'These 2 hold', 'all hold 0 %');
  const ofWhat = (given, banned, next = ' sea') => words.coverageCaption({given, wanted: {banned}, without: [], rows: [{pieces: [{text: next}]}]});
  assert.equal(ofWhat(''), 'of what the model thinks comes next, in tokens');
  for (const whole of [' and', ' ']) assert.equal(ofWhat(whole), 'of what the model thinks comes next, in tokens', 'no row continues the word');
  assert.equal(ofWhat(' lig', 0, 'ht'), 'of what the model thinks comes next, in tokens');
  assert.equal(ofWhat('', 1), 'of what the model thinks comes next, in tokens', 'bans have a line of their own');
  const deep = {given: '', wanted: {}, without: [], rows: [], firsts: false};
  assert.equal(words.coverageCaption(deep), 'of what the model thinks comes next, in tokens');
  assert.equal(words.coverageCaption({...deep, wordError: 0.001}), 'of what the model thinks comes next, in words', 'one word of each row');
  const begun = {given: ' lig', wanted: {}, without: [], rows: [{pieces: [{text: 'ht'}]}]};
  assert.equal(words.coverageCaption({...begun, wordError: 0}), 'of what the model thinks comes next, in words');
  assert.equal(words.coverageCaption({...begun, firsts: false}), 'of what the model thinks comes next, in tokens');
  const heated = temperature => words.coverageCaption({given: '', wanted: {temperature}, without: [], rows: []});
  assert.deepEqual([heated(1.7), heated(0)], ['of what comes next at temperature 1.7, in tokens', 'of what comes next at temperature 0, in tokens']);
});

test('what odds of words need is said where nothing else stands in their way', () => {
  const chosen = {odds: 'words', mode: 'likely', towards: '', avoid: '', temperature: 1, top_p: 1};
  /** @type {[object, string, string][]} */
  const cases = [
    [{}, 'rows', ''], [{temperature: 0.8}, 'rows', 'temperature 1'], [{top_p: 0.9}, 'rows', 'top-p 1'], [{temperature: 0, top_p: 0.9}, 'rows', 'temperature 1'],
    [{}, 'tree', 'choose Rows'], [{temperature: 2}, 'compare', 'choose Rows'], [{odds: 'tokens', temperature: 2}, 'tree', ''], [{mode: 'forks', temperature: 2}, 'rows', ''],
    [{towards: 'sea', temperature: 2}, 'rows', 'no steering'], [{avoid: 'sea'}, 'rows', 'no steering'], [{towards: 'sea'}, 'tree', 'choose Rows'],
    [{odds: 'tokens', towards: 'sea'}, 'rows', ''],
  ];
  for (const [settings, view, need] of cases) assert.equal(words.wordsNeed({...chosen, ...settings}, view), need && `For odds of words: ${need}.`);
});

test('where a temperature gives no other rows it is said which choice does', () => {
  const remark = (settings, view = 'rows') => words.sameRowsRemark({odds: 'tokens', mode: 'likely', towards: '', avoid: '', temperature: 2, top_p: 1, ...settings}, view);
  for (const settings of [{}, {temperature: 0}, {mode: 'forks'}, {towards: 'sea'}]) assert.equal(remark(settings), 'For other rows: Show “sampled”.');
  for (const settings of [{mode: 'sampled'}, {temperature: 1}, {temperature: 1, top_p: 0.5}]) assert.equal(remark(settings), '');
  assert.equal(remark({}, 'tree'), '');
});

test('at another temperature, odds are said to be those of tokens, also where rows lengthen the last word', () => {
  const rows = [{pieces: [{text: 'house'}]}], drawn = {firsts: true, given: ' light', rows, count: 1, without: [], wanted: {mode: 'likely', odds: 'words', k: 1}};
  const summary = wanted => words.summarySentence({state: 'settled'}, {...drawn, wanted: {...drawn.wanted, ...wanted}});
  assert.match(summary({temperature: 0.5}), /are those of tokens/);
  assert.doesNotMatch(summary({temperature: 1}), /are those of tokens/);
});

test('a column says what ≤ before a share means', () => {
  const rows = [{pieces: [{text: 'house'}]}], drawn = {given: ' light', rows, wanted: {mode: 'likely', temperature: 0.5}};
  assert.equal(words.columnRemarks(drawn), '');
  assert.match(words.columnRemarks({...drawn, rows: [{...rows[0], share: {p: 0.1, bound: true}}]}), /^≤ means at most\./);
});

test('a column says which rows temperature 0 or top-p leaves out, and that these can be clicked', () => {
  const row = excludes => ({pieces: [{text: ' sea'}], cut: Boolean(excludes), excludes}), remarks = (...rows) => words.columnRemarks({given: '', wanted: {mode: 'likely', temperature: 0}, rows});
  assert.equal(remarks(row(''), row('temperature 0'), row('temperature 0')), 'The rows with 0 % are left out by temperature 0: it keeps likelier tokens only. You can still choose them.');
  assert.equal(remarks(row(''), row('top-p 0.5')), 'The row with 0 % is left out by top-p 0.5: it keeps likelier tokens only. You can still choose it.');
  assert.equal(remarks(row('')), '');
});

test('a first row that goes on from a click, though others are likelier, says why it is first', () => {
  const row = (p, more) => ({pieces: [{text: ' house'}], share: {p}, ...more}), drawn = {firsts: true, given: '', count: 2, without: [], wanted: {mode: 'likely', odds: 'tokens', k: 2}};
  const summary = (...rows) => words.summarySentence({state: 'settled'}, {...drawn, rows});
  assert.match(summary(row(0.1, {pinned: true}), row(0.2)), / The first row goes on from your choice, so it stays first\.$/);
  for (const rows of [[row(0.3, {pinned: true}), row(0.2)], [row(0.1), row(0.2)], [row(0.1, {pinned: true, extra: true}), row(0.2)]]) assert.doesNotMatch(summary(...rows), /your choice/);
});

test('where top-p keeps more tokens than are known, it is said what ≤ means', () => {
  const drawn = {firsts: true, given: '', count: 1, without: [], wanted: {mode: 'likely', odds: 'tokens', k: 1, top_p: 0.9}};
  const summary = share => words.summarySentence({state: 'settled'}, {...drawn, rows: [{pieces: [{text: 'house'}], share}]});
  assert.match(summary({p: 0.1, bound: true}), /top-p 0\.9\. ≤ means at most\. Top-p keeps more than/);
  assert.doesNotMatch(summary({p: 0.1}), /≤/);
});

test('likely banned tokens are named with the odds that they would have', () => {
  const caption = (banned, ...without) => said(words.bannedCaption({wanted: {banned}, without}));
  const token = (text, p) => ({text, odds: p === null ? null : {p}});
  assert.equal(caption(1, token(' from', 0.37)), 'without “from” (37 %)');
  assert.equal(caption(2, token(' from', 0.37), token(' to', 0.05)), 'without “from” (37 %), “to” (5 %)');
  assert.equal(caption(4, token(' from', 0.37), token(' to', 0.001)), 'without “from” (37 %), “to” (0.1 %) and 2 more');
  assert.equal(caption(4, ...['a', 'b', 'c', 'd'].map(text => token(text, 0.1))), 'without “a” (10 %), “b” (10 %), “c” (10 %) and 1 more');
  assert.equal(caption(3), 'without 3 banned tokens');
  assert.equal(caption(1, token(' from', null)), 'without “from”');
  assert.equal(caption(0, token(' from', 0.37)), '');
  const sentence = (banned, ...without) => said(words.bannedSentence({wanted: {banned}, without}));
  assert.equal(sentence(1, token(' from', 0.37)),
    'These rows are without “from” (37 %). In brackets: the chance of each right after your text, if it were not banned.');
  assert.equal(sentence(1, token(' from', null)), 'These rows are without “from”.');
  assert.equal(sentence(0), '');
});

const piece = {text: ' sea', odds: {p: 0.25}, upTo: {p: 0.125}}, row = {path: {p: 0.01}, raw: false, pieces: []};

test('a piece is described with its odds, those up to it and those of its row', () => {
  assert.equal(said(words.describePiece(row, piece)), 'Token “sea”: 25 % after the text before it · up to here 13 % · whole row 1 %');
  assert.ok(said(words.describePiece({...row, raw: true}, piece)).endsWith('whole row 1 % · raw odds'));
  assert.equal(said(words.describeOther({text: ' sea', odds: {p: 0.25}})), '“sea” 25 % · none of the rows begins with it; … means that the word may be longer');
  assert.equal(said(words.describeOther({text: ',', odds: {p: 0.25}})), '“,” 25 % · none of the rows begins with it');
  assert.equal(said(words.describeOther({text: 'n', odds: {p: 0.25}, next_word: {}}, 'the')), '“then” 25 % · none of the rows begins with it');
  assert.equal(said(words.describeOther({text: 'She', odds: {p: 0.01}, joined: true})), '“She” 1 % · without a space before it, which the row with this word has; … means that the word may be longer');
  assert.equal(said(words.describeOther({text: ' the', odds: {p: 0.22}, otherwise: true})), '“the” 22 % · then something else than in the rows that begin with it');
  assert.equal(said(words.describeOther({text: ' sp', odds: {p: 0.02, bound: true}, next_word: {}})), '“sp” ≤ 2 % · none of the rows begins with it; ≤ means at most; … means that the word may be longer');
});

const grown = (length, more = {}) => ({branch: {ids: Array(length)}, pieces: [], extra: false, ended: false, healed: false, ...more});

test('progress says first how far the text is read', () => {
  assert.equal(words.progressSentence([512, 2000], [grown(3)], {depth: 5}), 'Reading: 512 of 2,000 tokens');
  assert.equal(words.progressSentence([0, 1], null, undefined), 'Reading: 0 of 1 token');
});

test('progress says how deep all growing rows are', () => {
  assert.equal(words.progressSentence(null, [grown(3), grown(3)], {depth: 7}), 'Growing: 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3), grown(2, {ended: true}), grown(1, {extra: true})], {depth: 7, until: 'tokens'}), 'Growing: 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3), grown(2, {repeats: true})], {depth: 7}), 'Growing: 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3, {healed: true, pieces: [{tokens: 2}]})], {depth: 7}), 'Growing: 2 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3, {healed: true, pieces: [{tokens: 1}]})], {depth: 7}), 'Growing: 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(8, {healed: true, pieces: [{tokens: 1}]})], {depth: 7}), 'Computing the odds …');
  assert.equal(words.progressSentence(null, [grown(0, {healed: true})], {depth: 7}), 'Growing: 0 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3)], {depth: 40, until: 'word'}), 'Growing: 3 tokens');
});

test('progress says “at least” where a row is deeper than another', () => {
  assert.equal(words.progressSentence(null, [grown(3), grown(5)], {depth: 7}), 'Growing: at least 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(3), grown(5, {ended: true})], {depth: 7}), 'Growing: 3 of 7 tokens');
  assert.equal(words.progressSentence(null, [grown(1), grown(2)], {depth: 40, until: 'word'}), 'Growing: at least 1 token');
  assert.equal(words.progressSentence(null, [grown(7), grown(8)], {depth: 7}), 'Computing the odds …');
});

test('a row says why it stops, where that is no ending', () => {
  const phrases = [{repeats: true, limit: 0}, {repeats: false, limit: 40}, {repeats: false, limit: 1}, {repeats: false, limit: 0}];
  assert.deepEqual(phrases.map(words.stopPhrase), ['repeats', 'limit of 40 tokens', 'limit of 1 token', '']);
  assert.deepEqual(phrases.map(words.stopSentence), [
    'The row ends here: from here on it would repeat itself, or it repeats your text.',
    'The row stops at the limit of 40 tokens, without the end that you asked for.',
    'The row stops at the limit of 1 token, without the end that you asked for.', '',
  ]);
});

test('where no row grows there is no progress', () => {
  assert.equal(words.progressSentence(null, false, undefined), '');
  assert.equal(words.progressSentence(null, [grown(3, {ended: true})], {depth: 7}), '');
});

const drawn = (more = {}) => ({rows: [row], count: 1, firsts: true, given: '', wanted: {}, without: [], ...more});
const CHOOSE = 'Each button is a token: a word, or a part of one. Choose one to write up to it.';

test('the summary says which odds the shares are', () => {
  const caption = more => words.summarySentence({state: 'settled'}, drawn(more));
  assert.equal(caption(), `A row’s share is the chance that its part in bold comes next: a token, as the model gives it. ${CHOOSE}`);
  assert.equal(caption({firsts: false}), `A row’s share is the chance that its part in bold comes next: all up to where it differs from the other rows, as the model gives it. ${CHOOSE}`);
  const first = 'A row’s share is the chance that its part in bold comes next: a token, as the model gives it';
  assert.equal(caption({given: 'lig', rows: [{pieces: [{text: 'ht'}]}]}), `${first}, after your text with the unfinished word at its end. ${CHOOSE}`);
  assert.equal(caption({given: 'and', rows: [{pieces: [{text: ' a'}]}]}), `${first}. ${CHOOSE}`);
});

test('the caption names temperature and top-p', () => {
  const caption = wanted => words.summarySentence({state: 'settled'}, drawn({wanted})).replace('A row’s share is the chance that its part in bold comes next: a token, ', '').replace(` ${CHOOSE}`, '');
  assert.equal(caption({temperature: 1, top_p: 1}), 'as the model gives it.');
  assert.equal(caption({temperature: 0.7}), 'at temperature 0.7.');
  assert.equal(caption({temperature: 0.7, top_p: 0.9}), 'at temperature 0.7, top-p 0.9.');
  assert.equal(caption({top_p: 0.9}), 'at temperature 1, top-p 0.9.');
  assert.equal(caption({temperature: 0, top_p: 0.9}), 'at temperature 0: the likeliest is certain.');
  assert.equal(caption({temperature: 0.7, banned: 2}), 'at temperature 0.7, without 2 banned tokens.');
});

test('rows that are only to be read invite no click', () => {
  const sentence = words.summarySentence({state: 'settled'}, drawn(), 0, true);
  assert.equal(sentence, 'A row’s share is the chance that its part in bold comes next: a token, as the model gives it.');
});

test('settings of odds are named where they are not those of the model', () => {
  assert.equal(words.settingsClause({temperature: 1, top_p: 1, avoid: ''}), '');
  assert.equal(words.settingsClause({temperature: 0.7, top_p: 0.9}), 'at temperature 0.7, top-p 0.9');
  assert.equal(words.settingsClause({banned: 1}), 'without 1 banned token');
  assert.equal(words.settingsClause({banned: 2, banned_texts: [' afraid', ' sad']}), 'without “afraid”, “sad”');
  assert.equal(words.settingsClause({banned: 2, banned_texts: [' afraid', '']}), 'without 2 banned tokens');
  assert.equal(words.settingsClause({avoid: 'sea', banned: 1, banned_texts: [' afraid']}), 'without the word “sea” and “afraid”');
  assert.equal(words.settingsClause({temperature: 0.7, avoid: 'sea', banned: 2}), 'at temperature 0.7, without the word “sea” and 2 banned tokens');
});

test('a note replaces the summary', () => {
  assert.equal(words.summarySentence({state: 'settled', note: 'So it is.'}, drawn()), 'So it is.');
  assert.equal(words.summarySentence({state: 'thinking', note: 'So it is.'}, drawn({rows: [], count: 0})), 'So it is.');
});

test('the summary says where the model begins to read', () => {
  assert.equal(words.summarySentence({state: 'settled', note: 'So.'}, drawn(), 1233), 'The model reads from character 1,234 on. So.');
  assert.equal(words.summarySentence({state: 'settled', note: 'So.'}, drawn(), 0), 'So.');
});

test('every state without rows has a sentence', () => {
  const none = drawn({rows: [], count: 0}), sentence = (state, more = {}) => words.summarySentence({state, ...more}, none);
  assert.equal(sentence('error'), 'There are no branches for this text.');
  assert.equal(sentence('error', {note: 'The model has gone.'}), 'The model has gone.');
  assert.equal(sentence('paused'), 'Paused. Press “Go on” to look for branches again.');
  assert.equal(sentence('paused', {note: 'A selection.'}), 'A selection.');
  assert.equal(sentence('thinking'), 'Looking ahead …');
  assert.equal(sentence('thinking', {reading: [1, 2]}), 'The model reads your text first.');
  assert.equal(sentence('settled'), '');
  assert.equal(sentence('empty'), '');
});

test('while rows grow, the summary is the same', () => {
  assert.ok(words.summarySentence({state: 'thinking'}, drawn()).startsWith('A row’s share is'));
});

const cost = {passes: 4, tokens: 19, seconds: 0.0614};

test('the meter shows passes, tokens and time', () => {
  assert.deepEqual(words.costFigures({cost, alone: 1611}, 0), [
    ['4 passes', 'through the model, for all rows together'],
    ['19 tokens', 'computed for these rows; a request of its own for each row would compute 1,611'], ['61 ms', 'in all'],
  ]);
  assert.deepEqual(words.costFigures({cost: {passes: 0, tokens: 1, seconds: 1.26}, alone: 0}, 30), [
    ['0 passes', 'through the model: these rows were computed before'], ['1 token', 'computed for these rows'], ['1.3 s', 'in all'],
    ['30 tokens', 'computed in advance, so that a click on a token with a dot is answered at once'],
  ]);
  assert.equal(words.costFigures({cost: {...cost, passes: 1, seconds: 1}}, 0)[0][0], '1 pass');
  assert.equal(words.costFigures({cost: {...cost, seconds: 1}}, 0)[2][0], '1.0 s');
});

test('the announcement says the coverage and how the rows begin', () => {
  const pieces = texts => ({pieces: texts.map(text => ({text}))});
  const told = words.announcementSentence({count: 3, coverage: {p: 0.5}, rows: [pieces([' a', ' b', ' c', ' d']), pieces(['\n']), pieces([])]});
  assert.equal(said(told), 'These 3 hold 50 %: a b c d; line break; end');
  const heated = words.announcementSentence({count: 3, coverage: {p: 0.5}, wanted: {temperature: 1.2}, given: '', rows: [pieces([' a'])]});
  assert.equal(said(heated), 'These 3 hold 50 % of what comes next at temperature 1.2, in tokens: a');
  const chosen = words.announcementSentence({count: 2, coverage: {p: 0.5}, rows: [{...pieces([' on']), extra: true, pinned: true}, pieces([' a']), pieces([' b'])]});
  assert.equal(said(chosen), 'First the rest of your choice: on. The other 2 hold 50 %: a; b');
  const steered = words.announcementSentence({count: 1, coverage: {p: 0.5}, word: {word: 'sea', within: 5, low: 0.2, high: 0.9}, rows: [{...pieces([' sea']), branch: {word: [0, 1]}}]});
  assert.equal(said(steered), 'This one holds 50 %: sea. “sea”: at least 20 % within 5 tokens, as a whole word');
  const story = words.announcementSentence({count: 1, coverage: {p: 0.5}, rows: [pieces(['.', '\n\n', 'The'])]});
  assert.equal(said(story), 'This one holds 50 %: full stop, line break, line break, The');
  const alike = last => ({apart: 5, pieces: [' the', ' opport', 'unity', ' to', last, ' go'].map((text, index) => ({text, tokens: index + 1}))});
  const both = words.announcementSentence({count: 2, coverage: {p: 0.5}, rows: [alike(' see'), alike(' hear')]});
  assert.equal(said(both), 'These 2 hold 50 %: the opportunity to see go; the opportunity to hear go');
});

test('a row is announced as whole words, of a long one the first twelve, at least up to what sets it apart', () => {
  const announced = row => said(words.announcementSentence({count: 1, coverage: {p: 0.5}, rows: [row]})).split(': ')[1];
  const row = (texts, apart) => ({apart, pieces: texts.map((text, index) => ({text, tokens: index + 1}))});
  assert.equal(announced(row([' the', ' opport', 'unity', ' to', ' see', ' it', '.'])), 'the opportunity to see it, full stop');
  const numbers = count => Array.from({length: count}, (_, index) => ` ${index + 1}`);
  assert.equal(announced(row(numbers(12))), '1 2 3 4 5 6 7 8 9 10 11 12');
  assert.equal(announced(row([...numbers(12), '.'])), '1 2 3 4 5 6 7 8 9 10 11 12, full stop', 'no word is left out');
  assert.equal(announced(row(numbers(13))), '1 2 3 4 5 6 7 8 9 10 11 12, and so on');
  assert.equal(announced(row([...numbers(11), ' light', 'house', ' shone'])), '1 2 3 4 5 6 7 8 9 10 11 lighthouse, and so on');
  assert.equal(announced(row(numbers(20), 15)), '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15, and so on');
  assert.equal(announced(row([...numbers(13), ' light', 'house', ' shone'], 14)), '1 2 3 4 5 6 7 8 9 10 11 12 13 lighthouse, and so on');
});

test('the announcement names signs as buttons do, and only semicolons stand between rows', () => {
  const rows = [['.', ' He', ' loves'], [',', ' so', ' I'], [' Paris', ',', ' and'], [' Paris', ' and', ' the'], [';', ' a']].map(texts => ({pieces: texts.map(text => ({text}))}));
  assert.equal(said(words.announcementSentence({count: 5, coverage: {p: 0.5}, rows})),
    'These 5 hold 50 %: full stop, He loves; comma, so I; Paris, comma, and; Paris and the; semicolon, a');
});

test('a row that continues a word is announced with the letters that stand in the text', () => {
  const row = (...texts) => ({pieces: texts.map(text => ({text}))}), rows = [row('to', ' the', ' woods'), row(' a', ' park'), {...row('to', ' the'), pinned: true}];
  assert.equal(said(words.announcementSentence({count: 2, coverage: {p: 0.5}, rows}, 'My dog likes to run in')), 'These 2 hold 50 %: into the woods; a park; to the');
});

test('a refusal says that nothing was inserted', () => assert.equal(words.REFUSAL, 'That branch was for another text: it was not inserted.'));

test('a row whose first piece is its next word has one figure, and another piece says what its figure is', () => {
  const word = {share: {p: 0.4}, next_word: {text: ' I'}}, figure = (...given) => said(words.pieceFigure(...given));
  assert.equal(figure(word, {text: ' I', odds: {p: 0.26}}, true), '40 %');
  assert.equal(figure(word, {text: " I'm", odds: {p: 0.26}}, true), '26 % for these tokens');
  assert.equal(figure(word, {text: " I'm", odds: {p: 0.4}}, true), '40 %');
  assert.equal(figure(word, {text: ' I', odds: {p: 0.26}}, false), '26 %');
  assert.equal(figure({share: {p: 0.4}}, {text: ' I', odds: {p: 0.26}}, true), '26 %');
});

test('where a first piece and its row have different figures, both are explained', () => {
  const first = {text: " I'm", odds: {p: 0.26}, upTo: {p: 0.26}};
  const of = share => said(words.describePiece({...row, pieces: [first, piece], share: {p: share}, next_word: {text: " I'm"}}, first));
  assert.equal(of(0.4), 'Next word “I\'m”: 40 %, in any tokens · token “I\'m”: 26 % · whole row 1 %');
  assert.equal(of(0.26), 'Token “I\'m”: 26 % after the text before it · up to here 26 % · whole row 1 %');
});

test('what Tab does is said with the way to leave the text box by keys, once', () => {
  assert.equal(words.tabSentence(' sea'), 'Tab inserts “sea”; Esc, then Tab, leaves the text box.');
  assert.equal(words.tabSentence('\n\nThe sea ', true), 'Tab inserts “line break, line break, The sea”.');
  assert.equal(words.tabSentence('\n', true), 'Tab inserts “line break”.');
});

test('where there are no rows to go to, one sentence says why', () => {
  const why = (state, more = {}) => words.noRowsSentence({state, paused: false, selected: false, ...more});
  const all = [why('empty'), why('paused', {paused: true}), why('paused', {selected: true}), why('thinking'), why('error')];
  assert.equal(new Set(all).size, all.length);
  for (const sentence of all) assert.match(sentence, /^There are no rows[^.]*\.( [^.]+\.)?$/);
  assert.match(why('empty', {paused: true}), /write something first/);
  assert.match(why('thinking', {paused: true}), /Alt\+P/);
});

test('where forks were looked for and no two rows begin alike, a sentence says so', () => {
  const beginning = (...ids) => ({pieces: ids.map(id => ({ids: [id], text: ` ${id}`})), share: {p: 0.2}});
  const caption = (rows, more = {}, state = 'settled') => words.summarySentence({state}, drawn({rows, count: rows.length, wanted: {k: 5, mode: 'forks', ...more}}));
  const none = /No fork is among these rows: each begins with another token\./;
  assert.match(caption([beginning(1, 2), beginning(3, 4)]), none);
  for (const rows of [[beginning(1, 2), beginning(1, 4)], [beginning(1, 2)], []]) assert.doesNotMatch(caption(rows), none);
  assert.match(caption([beginning(1, 2), beginning(3, 4), {...beginning(1, 5), extra: true}]), none, 'a row that was changed is no fork that was found');
  assert.doesNotMatch(caption([beginning(1, 2), beginning(3, 4)], {}, 'thinking'), none, 'a fork may be found');
  assert.doesNotMatch(caption([beginning(1, 2), beginning(3, 4)], {mode: 'diverse'}), none);
});

test('a mode that found fewer rows than asked for says so', () => {
  const caption = (count, mode) => words.summarySentence({state: 'settled'}, drawn({count, wanted: {k: 5, mode}}));
  assert.ok(caption(4, 'forks').endsWith(' 4 of 5 rows: no more forks were found.'));
  assert.ok(caption(4, 'surprising').endsWith(' 4 of 5 rows: no other beginning with 0.3 % or more, at temperature 1, was found.'));
  for (const mode of ['diverse', 'best_first']) assert.ok(caption(4, mode).endsWith(' 4 of 5 rows: this choice of “Show” found no more.'), mode);
  const steered = (count, state) => words.summarySentence({state}, drawn({count, wanted: {k: 5, mode: 'likely', towards: 'sea'}}));
  assert.ok(steered(4, 'settled').endsWith(' 4 of 5 rows: no more ways to “sea” were found.'));
  for (const [count, state] of [[5, 'settled'], [4, 'thinking']]) assert.ok(steered(count, state).endsWith(CHOOSE));
  for (const [count, mode] of [[4, 'likely'], [4, 'sampled'], [5, 'surprising'], [9, 'every_level']]) assert.ok(!/of \d+ rows:/.test(caption(count, mode)), mode);
  for (const mode of ['forks', 'surprising']) {
    const early = words.summarySentence({state: 'thinking'}, drawn({count: 1, wanted: {k: 5, mode}}));
    assert.ok(early.includes('A row’s share') && !early.includes(' of 5 rows'), `${mode}: more may be found`);
  }
});

test('beside the rows stands what a mode shows that is not that of the likeliest rows', () => {
  const caption = (wanted, more = {}) => words.summarySentence({state: 'settled'}, drawn({count: 5, wanted: {k: 5, ...wanted}, ...more}));
  const begins = {every_level: 'Every level: rows split', forks: 'Forks: rows also fork later', best_first: 'Best first: the likeliest whole rows', sampled: 'Sampled: rows drawn at random', diverse: 'Diverse: likely rows', surprising: 'Surprising: the likeliest row'};
  for (const [mode, sentence] of Object.entries(begins)) {
    for (const temperature of [1, 0.5]) assert.ok(caption({mode, temperature}).includes(` ${sentence}`), mode);
    assert.ok(caption({mode, towards: 'sea'}).endsWith(CHOOSE), `rows to a word are not those of ${mode}`);
  }
  assert.ok(caption({mode: 'likely'}).endsWith(CHOOSE));
  const row = (p, more) => ({pieces: [{text: ' house'}], share: {p}, ...more});
  assert.match(caption({mode: 'diverse'}, {rows: [row(0.1, {pinned: true}), row(0.2)]}), / Diverse: .+ The first row goes on from your choice, so it stays first\.$/);
});

test('where the rows continue is said if it is not the end of the text', () => {
  const text = 'Mara had a key. The church was far away, and the wind';
  assert.equal(words.caretSentence(text, text.length), '');
  assert.equal(words.caretSentence(`${text} \n`, text.length), '', 'only spaces follow');
  assert.equal(words.caretSentence(text, 8), 'The rows continue at the caret, after “Mara had”. What follows it stays.');
  assert.equal(words.caretSentence(text, 40), 'The rows continue at the caret, after “…church was far away,”. What follows it stays.');
  assert.equal(words.caretSentence(text, 0), 'The rows continue at the caret: at the beginning of your text.');
  assert.equal(words.caretSentence('', 0), '');
});

test('where everything else lists nothing it says why, and its tip promises no click', () => {
  const why = (wanted, growing = false) => words.nothingElse({wanted, growing});
  assert.equal(why({}), 'none of it is likely enough to be listed');
  assert.equal(why({}, true), '', 'more may be found');
  assert.match(why({temperature: 0}), /^nothing, at temperature 0$/);
  assert.match(why({top_p: 0.9}), /^nothing, by top-p 0.9$/);
  assert.ok(words.elseTip(true).endsWith(' Choose it to list the likeliest of them.'));
  assert.doesNotMatch(words.elseTip(false), /click|choose|…/i);
});

test('a row that a person has changed is named by what it became', () => {
  const pieces = [{text: ' quiet'}, {text: ' old', isEdited: true}, {text: ' sea'}];
  assert.equal(words.changedPhrase({pieces}, 'The'), 'changed by you to “quiet old”');
  assert.equal(words.changedPhrase({pieces: [{text: ' sea'}]}, 'The'), '');
  const longer = [{text: ' a'}, {text: ' cow', isEdited: true}, {text: 'ered'}, {text: ','}];
  assert.equal(words.changedPhrase({pieces: longer}, 'The'), 'changed by you to “a cow”, a part of “cowered”', 'as it is shown');
  assert.equal(words.changedPhrase({pieces: [{text: 'c', isEdited: true}, {text: 'ow', isEdited: true}, {text: ' ran'}]}, 'The'), 'changed by you to “Thecow”');
});

test('a number is refused where there are rows but not that one, and where its row only ends the text', () => {
  const rows = [{pieces: [{text: ' sea'}], ended: true}, {pieces: [], ended: true}];
  assert.deepEqual([0, 1, 2].map(branch => words.refusedRowSentence(rows, branch)), ['', 'Branch 2 ends the text here: it inserts nothing.', 'There is no branch 3.']);
  assert.equal(words.refusedRowSentence([], 0), '');
});
