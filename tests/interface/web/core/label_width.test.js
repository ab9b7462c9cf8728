import assert from 'node:assert/strict';
import {test} from 'node:test';
import {labelWidth} from '../../../../interface/web/core/label_width.js';

// Advance widths of DejaVu Serif, the widest of the fonts that labels are drawn with, in units of 2048.
const DEJAVU = {a: 1221, b: 1311, i: 655, l: 655, m: 1942, s: 1051, w: 1753, M: 2097, W: 2105, Q: 1679, 0: 1303, ' ': 651, ',': 651, '%': 1946, r: 979, f: 758, t: 823};

test('the width is an upper bound for each character of a wide font', () => {
  for (const [character, units] of Object.entries(DEJAVU)) {
    assert.ok(labelWidth(character, 100) >= 100 * units / 2048, `${character}: ${labelWidth(character, 100)}`);
  }
});

test('widths of characters add up, and grow with the size', () => {
  assert.equal(labelWidth('', 15), 0);
  assert.equal(labelWidth('abab', 100), 2 * labelWidth('ab', 100));
  assert.equal(labelWidth('ab', 200), 2 * labelWidth('ab', 100));
  assert.equal(labelWidth('e\u0301', 100), labelWidth('e', 100));
});

test('ideographs and emoji are wide, and each counts once', () => {
  assert.equal(labelWidth('中', 100), 150);
  assert.equal(labelWidth('🙂', 100), 150);
  assert.ok(labelWidth('é', 100) >= 60 && labelWidth('é', 100) < 150);
});
