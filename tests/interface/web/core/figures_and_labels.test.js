import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as words from '../../../../interface/web/core/figures_and_labels.js';
import {withDice} from '../../../support/scripts/dice.js';

const {visibleText} = words;

// Without what keeps figures on one line.
const said = text => text.replaceAll('\u00a0', ' ');
const percent = figure => said(words.formatPercent(figure));

test('a surprise is shown in bits: one for a half, ten for about a thousandth', () => {
  assert.deepEqual([1, 2, 1024].map(times => words.bitsOfNats(Math.log(times))), [0, 1, 10]);
});

test('figures contain no breaking spaces', () => {
  for (const p of [0, 1e-9, 0.001, 0.37, 0.999, 1])
    for (const figure of [{p}, {p, bound: true}, {p, atLeast: true}]) assert.ok(!words.formatPercent(figure).includes(' '), p);
});

test('a percentage has two digits, below a hundredth one, and none behind the point from ten on', () => {
  const shown = {
    1: '100 %', 0.5: '50 %', 0.3719: '37 %', 0.1: '10 %', 0.0996: '10 %', 0.0994: '9.9 %', 0.125: '13 %', 0.051: '5.1 %', 0.05: '5 %', 0.0123: '1.2 %',
    0.001: '0.1 %', 0.00099: '0.099 %', 0.000996: '0.1 %', 0.00094: '0.094 %', 0.00012: '0.012 %', 0.0000945: '0.009 %', 0.0000016: '0.0002 %', 0.00000101: '0.0001 %', 0.00000099: '< 0.0001 %', 1e-300: '< 0.0001 %', 0: '0 %',
  };
  for (const [p, text] of Object.entries(shown)) assert.equal(percent({p: Number(p)}), text, p);
});

test('odds just below 1 are not shown as 100 %', () => {
  assert.equal(percent({p: 0.9949}), '99 %');
  assert.equal(percent({p: 0.995}), '> 99 %');
  assert.equal(percent({p: 0.999994}), '> 99 %');
  assert.equal(percent({p: 0.999995}), '100 %');
});

test('an upper bound is shown with ≤', () => {
  assert.equal(percent({p: 0.25, bound: true}), '≤ 25 %');
  assert.equal(percent({p: 0.994, bound: true}), '≤ 99 %');
  assert.equal(percent({p: 0.995, bound: true}), '≤ 100 %');
  assert.equal(percent({p: 0.0000016, bound: true}), '≤ 0.0002 %');
  assert.equal(percent({p: 0.0000009, bound: true}), '≤ 0.0001 %');
});

test('a lower bound is shown with ≥', () => {
  assert.equal(percent({p: 0.25, atLeast: true}), '≥ 25 %');
  assert.equal(percent({p: 0.994, atLeast: true}), '≥ 99 %');
  assert.equal(percent({p: 0.995, atLeast: true}), '> 99 %');
  assert.equal(percent({p: 0.00000101, atLeast: true}), '≥ 0.0001 %');
  assert.equal(percent({p: 0.0000009, atLeast: true}), '≥ 0 %');
});

test('bounds are spoken in words', () => {
  const spoken = odds => words.spokenOdds(`, ${words.formatPercent(odds)}`).replaceAll('\u00a0', ' ');
  assert.deepEqual([{p: 0.25, bound: true}, {p: 0.25, atLeast: true}, {p: 0.25}].map(spoken), [', at most 25 %', ', at least 25 %', ', 25 %']);
});

test('numbers are written with commas, counts with the right plural', () => {
  assert.deepEqual([words.formatNumber(1234567), words.formatNumber(12.6), words.formatNumber(0)], ['1,234,567', '13', '0']);
  assert.deepEqual([words.formatCount(1, 'token'), words.formatCount(2, 'token'), words.formatCount(0, 'pass', 'passes')], ['1 token', '2 tokens', '0 passes']);
});

test('line breaks and tabs have signs', () => assert.equal(visibleText('a\nb\r\tc\n'), 'a↵b␍⇥c↵'));

test('several line breaks have their number, which is no part of a text after them', () => {
  assert.deepEqual(['\n', '\n\n', '\n\n\n', ' \n\n', '.\n\n', '\n\n  ', '\n\n"'].map(visibleText), ['↵', '↵×2', '↵×3', '␣↵×2', '.↵×2', '↵×2␣␣', '↵×2"']);
  assert.deepEqual(['\n\nThe', '\n\n\n2'].map(visibleText), ['↵↵The', '↵↵↵2']);
  assert.deepEqual(['\n', '\n\n'].map(text => words.spokenText(text)), ['line break', 'line break, line break']);
});

test('spaces have signs only where there is nothing else', () => {
  assert.deepEqual([' ', '   ', ' a ', ''].map(visibleText), ['␣', '␣␣␣', ' a ', '']);
  assert.deepEqual([' \n', '\n\n', '\n  ', ' \t'].map(visibleText), ['␣↵', '↵×2', '↵␣␣', '␣⇥'], 'a line break after a space is another token');
});

test('characters that cannot be seen are named where there is nothing else', () => {
  assert.equal(visibleText('\u200b'), 'U+200B');
  assert.equal(visibleText('\ufe0f'), 'U+FE0F', 'it chooses how the character before it is drawn');
  assert.equal(visibleText('\0 '), 'U+0000 U+0020');
  assert.equal(visibleText('\u{e0041}'), 'U+E0041');
  assert.equal(visibleText('\u200b\u0301'), 'U+200B U+0301');
  assert.equal(visibleText('\u0301\u200b'), 'U+0301 U+200B');
  assert.equal(visibleText('a\u200b'), 'a\u200b');
  assert.equal(visibleText('\u200ba'), '\u200ba');
});

test('marks alone are shown as they are', () => assert.equal(visibleText('\u0301\u0302'), '\u0301\u0302'));

test('a text is quoted without the white space around it, unless it is nothing else', () => {
  assert.deepEqual([' sea ', '  ', '\n', 'a b'].map(words.quotedText), ['“sea”', '“␣␣”', '“↵”', '“a b”']);
});

test('a possible continuation has a label', () => {
  const shown = [{text: ' sea'}, {text: '  '}, {text: null}, {text: null, end: true}, {text: 'x', end: true}].map(words.continuationLabel);
  assert.deepEqual(shown, ['sea', '␣␣', '◌', 'end', 'end']);
  assert.equal(words.PARTIAL_TOKEN_SIGN, '◌');
});

test('signs are told apart by what is shown and by what is said', () => {
  const all = [' ', '\n', '"', ' "', ',', ' ,', '“', '”', "'", '—'].map(text => ({text, end: false})).concat({text: null, end: true}, {text: null, end: false});
  assert.deepEqual(all.map(words.continuationLabel), ['␣', '↵', '"', '␣"', ',', '␣,', '“', '”', "'", '—', 'end', '◌']);
  assert.deepEqual(all.map(words.spokenLabel), [
    'space', 'line break', 'quotation mark', 'space, quotation mark', 'comma', 'space, comma', 'opening quotation mark',
    'closing quotation mark', 'apostrophe', 'long dash', 'the end of the text', 'a part of a character',
  ]);
  for (const say of [words.continuationLabel, words.spokenLabel]) assert.equal(new Set(all.map(say)).size, all.length);
});

test('words are said as they are shown, without the white space around them', () => {
  assert.deepEqual([' sea', 'sea ', "'s", ' a,', 'x'].map(text => words.spokenLabel({text, end: false})), ['sea', 'sea', "'s", 'a, comma', 'x']);
  assert.deepEqual([' sea', '.\n', '', '🙂'].map(words.spokenText), [' sea', 'full stop, line break', '', '🙂']);
});

test('signs among words are said by their names, so that no two texts sound alike', () => {
  assert.deepEqual([' Paris, and', ' Paris and', '. He loves', ', so I', ' said “no”', ' (see', ' a—b', ' sea; a'].map(text => words.spokenText(text).trim()), [
    'Paris, comma, and', 'Paris and', 'full stop, He loves', 'comma, so I', 'said, opening quotation mark, no, closing quotation mark',
    'opening bracket, see', 'a, long dash, b', 'sea, semicolon, a',
  ]);
});

test('a sign that is a part of a word or a number is not named', () => {
  assert.deepEqual(["’s tail", "don't", 'well-known.', '3.5, 1,000', 'U.S', '12:30'].map(words.spokenText),
    ['’s tail', "don't", 'well-known, full stop', '3.5, comma, 1,000', 'U.S', '12:30']);
});

test('line breaks and tabs among words are said by their names', () => {
  assert.deepEqual(['\n\nThe', 'one\ttwo\n', ' \n a'].map(words.spokenText), ['line break, line break, The', 'one, tab, two, line break', 'line break, a']);
  assert.equal(words.spokenQuote('\n\nThe sea '), '“line break, line break, The sea”');
  assert.deepEqual([' ', '\n', ' sea'].map(words.spokenQuote), ['“space”', '“line break”', '“sea”']);
});

test('a row that continues a word has the letters typed of it', () => {
  const letters = words.continuedLetters;
  assert.deepEqual([letters(' the', 'm'), letters('the', 'm'), letters(' a-b2', '3'), letters('né', 'e')], ['the', 'the', 'b2', 'né']);
  assert.deepEqual([letters(' the', ' man'), letters(' the', ','), letters(' the', '\n'), letters(' the', undefined)], ['', '', '', '']);
  assert.deepEqual([letters('', 'm'), letters(' ', 'm'), letters(',', 'm'), letters('the ', 'm')], ['', '', '', '']);
  assert.deepEqual([letters('abcdefghijkl', 'm'), letters('abcdefghijklm', 'n')], ['abcdefghijkl', '…bcdefghijklm']);
});

test('in scripts without spaces no row continues a word', () => {
  for (const [typed, first] of [['中文', '字'], ['これは', 'ペン'], ['สวัส', 'ดี'], ['abc', '字'], ['中', 'abc']])
    assert.equal(words.continuedLetters(typed, first), '', typed + first);
  assert.equal(words.continuedLetters('при', 'вет'), 'при');
});

const inLine = (...given) => {
  const {labels, more} = words.likeliestLabels(...given);
  return labels.join('') + more;
};

test('what continues a word is listed with the letters typed of it, as in rows', () => {
  const part = {text: 'n', end: false, odds: {p: 0.1}}, word = {...part, next_word: {}};
  assert.deepEqual([words.otherLabel(part, ' the'), words.otherLabel(word, ' the'), words.otherLabel({...part, text: ' n'}, ' the')], ['the·n…', 'the·n', 'n…']);
  assert.equal(inLine([part, word], 'he'), 'he·n…, he·n');
  assert.deepEqual([words.spokenOther(part, 'he'), words.spokenOther({...part, text: ' n'}, 'he')], ['he, continued by n, or a longer word', 'n, or a longer word']);
  assert.equal(words.spokenOther(word, 'he'), 'he, continued by n');
});

const other = (text, p = 0.1) => ({text, odds: {p}});

test('a screen reader says quoted signs by their names, and those of the likeliest others', () => {
  assert.equal(words.spokenSentence('The model expected “.”; your “sea…” and “””, “ I ”.'), 'The model expected “full stop”; your “sea” or a longer word and “closing quotation mark”, “I”.');
  assert.equal(words.spokenSentence('“↵” and “↵×2”, “␣” and “⇥…”.'), '“line break” and “line break, line break”, “space” and “tab” or a longer word.');
  assert.deepEqual(['Insert “a↵b”.', 'Insert “a.”.'].map(words.spokenBreaks), ['Insert “a, line break, b”.', 'Insert “a.”.']);
  assert.equal(words.likeliestLabels([',', ' a', '.', '…', ' b'].map(text => other(text))).spoken, 'comma; a, or a longer word; full stop; ellipsis and more');
});

test('the likeliest others are one line', () => {
  assert.equal(inLine([' a', ' b', ' c', ' d', ' e'].map(text => other(text))), 'a…, b…, c…, d… and more');
  assert.equal(inLine([' a', ' b', ' c', ' d'].map(text => other(text))), 'a…, b…, c…, d…');
  assert.equal(inLine([]), '');
  assert.equal(inLine([other('\n'), {...other(null), end: true}]), '↵, end', 'where there is nothing else');
  assert.equal(inLine([other(' a'), other('\n'), other(null), other(' b')]), 'a…, b… and more');
});

test('signs stand in quotation marks in the line of others, since commas separate them', () => {
  const signs = [{...other('.'), otherwise: true}, other(','), other(' sea'), other(' (')];
  assert.equal(inLine(signs), '“,”, sea…, “␣(” and more', 'with “.” begins a row');
  assert.equal(inLine(signs.slice(0, 1)), '“.”… then something else');
});

test('a word that may go on ends in “…” there too, as in the open list', () => {
  const part = {...other(' sl'), next_word: {}, odds: {p: 0.1, bound: true}};
  assert.equal(inLine([part, {...part, text: ' sea', odds: {p: 0.1}}]), 'sl…, sea');
});

test('the list of other words shows parts of words as parts, and what it leaves out', () => {
  const label = bound => words.otherLabel({text: ' sl', end: false, next_word: {}, odds: {p: 0.01, bound}});
  assert.deepEqual([label(true), label(false)], ['sl…', 'sl']);
  assert.equal(words.otherLabel({text: ',', end: false, next_word: {}, odds: {p: 0.01, bound: true}}), ',', 'a sign is no beginning of a word');
  const otherwise = {text: ' the', end: false, odds: {p: 0.2}, otherwise: true}, joined = {text: 'She', end: false, next_word: {}, odds: {p: 0.01, bound: true}, joined: true};
  assert.deepEqual([words.otherLabel(joined), words.spokenOther(joined)], ['She… without a space', 'She, or a longer word, without a space before it']);
  assert.deepEqual([words.otherLabel(otherwise), words.spokenOther(otherwise)], ['the… then something else', 'the, then something else']);
  assert.equal(words.spokenOther({text: ' the', end: true, odds: {p: 0.1}}), 'the end of the text');
  const token = text => words.otherLabel({text, end: text === 'eos', odds: {p: 0.01}});
  assert.deepEqual([' n', ' 19', 'é', ',', ' (', '\n', ' a.', '字', 'eos', null].map(token), ['n…', '19…', 'é…', ',', '␣(', '↵', 'a.', '字', 'end', '◌'],
    'a token is a word or the beginning of one, unless it ends in a sign');
  const rest = (p, ...listed) => said(words.unlistedSentence({p}, listed.map(one => ({odds: one}))));
  assert.equal(rest(0.5, {p: 0.2}, {p: 0.1}), 'and all others together 20 %');
  assert.equal(rest(0.5, {p: 0.2, bound: true}), 'and all others together ≥ 30 %');
  assert.equal(rest(0.3, {p: 0.2}, {p: 0.1}), '');
});

test('shares of a whole add up to 100 %', () => withDice(200, dice => {
  const counts = Array.from({length: 1 + dice.upTo(5)}, () => dice.upTo(dice.upTo(2) ? 2000 : 5)), all = counts.reduce((sum, count) => sum + count, 0);
  const shares = words.percentsOfAll(counts), figures = shares.map(share => (share.startsWith('under') ? 0 : Number.parseInt(share, 10)));
  assert.equal(figures.reduce((sum, figure) => sum + figure, 0), all ? 100 : 0);
  for (const [index, count] of counts.entries()) {
    assert.ok(Math.abs(figures[index] - (all ? count / all * 100 : 0)) < 1);
    assert.equal(shares[index].startsWith('under'), count > 0 && !figures[index]);
  }
}));
