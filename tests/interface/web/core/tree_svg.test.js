import assert from 'node:assert/strict';
import {test} from 'node:test';
import {layoutTree} from '../../../../interface/web/core/tree_layout.js';
import {escapeXml, opacityOf, treeSvg} from '../../../../interface/web/core/tree_svg.js';
import {withDice} from '../../../support/scripts/dice.js';
import {randomTree} from '../../../support/scripts/trees.js';

const COLOURS = {paper: '#fff', ink: '#111', soft: '#222', faint: '#444', line: '#333', accent: '#a00', good: '#0a0'};
const svgOf = (root, river = false) => treeSvg(layoutTree(root, {river}), {colours: COLOURS, title: 'A tree'});
const node = (text, more = {}) => ({key: text, text, state: 'ahead', odds: null, children: [], rest: null, ...more});

// A reader of XML that knows elements, attributes and five entities, and fails on anything else.
function readXml(text) {
  const tags = [], stack = [], entities = {amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'"};
  let rest = text;
  const decode = raw => raw.replace(/&(#?\w+);?/g, (_, name) => entities[name] ?? assert.fail(name));
  while (rest) {
    const tag = /^<(\/?)([a-z]+)((?: [a-zA-Z:-]+="[^"<]*")*)(\/?)>/.exec(rest), words = /^[^<]+/.exec(rest);
    assert.ok(tag || words, rest.slice(0, 80));
    if (words) (stack.at(-1) ?? {}).text = ((stack.at(-1) ?? {}).text ?? '') + decode(words[0]);
    else if (tag[1]) assert.equal(stack.pop()?.name, tag[2]);
    else {
      const attributes = Object.fromEntries([...tag[3].matchAll(/ ([a-zA-Z:-]+)="([^"<]*)"/g)].map(([, name, value]) => [name, decode(value)]));
      const element = {name: tag[2], attributes, parent: stack.at(-1) ?? null, text: ''};
      tags.push(element);
      if (!tag[4]) stack.push(element);
    }
    rest = rest.slice((tag ?? words)[0].length);
  }
  assert.equal(stack.length, 0);
  return tags;
}

test('a random drawing is well-formed XML with one text for each node and one path for each link', () => {
  withDice(20, dice => {
    for (const river of [false, true]) {
      const root = randomTree(dice), {nodes, links} = layoutTree(root, {river}), tags = readXml(svgOf(root, river));
      assert.equal(tags.filter(({name}) => name === 'text').length, nodes.length);
      assert.equal(tags.filter(({name}) => name === 'path').length, links.length);
      const labels = tags.filter(({name, parent}) => name === 'tspan' && parent.name === 'text' && !('dx' in (parent.ignored ?? {})));
      for (const {label, figure} of nodes) for (const wanted of [label, figure].filter(Boolean)) assert.ok(labels.some(({text}) => text === wanted), wanted);
    }
  });
});

test('text of a model never becomes markup', () => {
  const evil = '</text><script>alert("1")</script>&amp;', tags = readXml(svgOf(node(evil.slice(0, 24))));
  assert.ok(!tags.some(({name}) => name === 'script'));
  assert.ok(tags.some(({text}) => text === evil.slice(0, 24)));
  assert.equal(escapeXml(`<a href="x" id='y'>&`), '&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;');
  assert.ok(readXml(treeSvg(layoutTree(node('x')), {colours: COLOURS, title: '"><b>'})).some(({text}) => text === '"><b>'));
});

test('characters that XML forbids and halves of characters are replaced', () => {
  assert.equal(escapeXml('a\0b\x1bc\ufffed'), 'a\ufffdb\ufffdc\ufffdd');
  assert.equal(escapeXml('\ud83d🙂\ude42'), '\ufffd🙂\ufffd');
  assert.equal(escapeXml('a\tb\nc\r'), 'a\tb\nc\r');
});

test('the same tree gives the same bytes', () => {
  const dice = () => withDice(1, one => { svg.push(svgOf(randomTree(one), true)); }), svg = [];
  dice();
  dice();
  assert.equal(svg[0], svg[1]);
});

test('states are told apart by colour, and by more than colour', () => {
  const of = state => readXml(svgOf({...node('r'), children: [node('c', {state, odds: {p: 0.5}})]}));
  const path = state => of(state).find(({name}) => name === 'path').attributes, text = state => of(state).filter(({name}) => name === 'tspan')[1];
  assert.equal(path('ahead').stroke, '#a00');
  assert.equal(path('chosen').stroke, '#0a0');
  assert.equal(path('left')['stroke-dasharray'], '4 3');
  assert.equal(path('seen')['stroke-dasharray'], undefined);
  assert.equal(text('left').attributes['font-style'], 'italic');
  assert.equal(text('chosen').attributes['text-decoration'], 'underline');
  assert.equal(text('ahead').attributes['text-decoration'], undefined);
  assert.equal(opacityOf('rest'), 0.6);
  const here = readXml(svgOf(node('x', {here: true}))).find(({name}) => name === 'text');
  assert.equal(here.attributes['font-weight'], '700');
  assert.equal(readXml(svgOf(node('x'))).find(({name}) => name === 'text').attributes['font-weight'], undefined);
});

test('a river is filled with the colours of its states', () => {
  const tags = readXml(svgOf({...node('r', {reached: true, state: 'typed'}), children: [node('c', {odds: {p: 0.5}}), node('d', {state: 'rest', odds: {p: 0.5}})]}, true));
  const paths = tags.filter(({name}) => name === 'path').map(({attributes}) => [attributes.fill, attributes['fill-opacity']]);
  assert.deepEqual(paths, [['#a00', '0.35'], ['#333', '0.6']]);
  const rects = tags.filter(({name}) => name === 'rect').map(({attributes}) => [attributes.fill, attributes['fill-opacity']]);
  assert.deepEqual(rects, [['#fff', undefined], ['#222', '0.2'], ['#222', '1'], ['#a00', '0.35'], ['#333', '0.6']]);
});
