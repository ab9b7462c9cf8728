import assert from 'node:assert/strict';
import {test} from 'node:test';

import {meet, tipPosition} from '../../../../interface/web/core/tip_position.js';

const box = (left, top, right, bottom) => ({left, top, right, bottom});
const page = {width: 1000, height: 800}, size = {width: 300, height: 40};
const toolbar = box(400, 100, 900, 160), control = box(420, 110, 480, 130), neighbour = box(500, 135, 600, 155);
const place = (more = {}) => tipPosition({control, toolbar, toolbars: [], controls: [control, neighbour], size, page, ...more});

test('a sentence stands below its toolbar, under its control', () => {
  assert.deepEqual(place(), {left: 420, top: 164});
});

test('it stands above where a control is below, and below the next toolbar where there is one above too', () => {
  const next = box(400, 160, 900, 200), below = box(420, 165, 500, 195), above = box(420, 60, 500, 95);
  assert.deepEqual(place({toolbars: [next], controls: [control, below]}), {left: 420, top: 56});
  assert.deepEqual(place({toolbars: [next], controls: [control, below, above]}), {left: 420, top: 204});
});

test('it stands above a toolbar that precedes where there is no other place', () => {
  const before = box(400, 60, 900, 99), above = box(420, 65, 500, 95), low = box(400, 100, 900, 799);
  assert.deepEqual(place({toolbar: low, toolbars: [before], controls: [control, above]}), {left: 420, top: 16});
});

test('a sentence that may stand beside its frame is as high as its figure, or as near to it as it covers no control', () => {
  assert.deepEqual(place({beside: true}), {left: 96, top: 110});
  assert.deepEqual(place({beside: true, controls: [box(300, 140, 390, 170)]}), {left: 96, top: 90}, 'ends where the figure ends');
  assert.deepEqual(place({beside: true, controls: [box(300, 80, 390, 170)]}), {left: 96, top: 36}, 'above a control');
  assert.deepEqual(place({beside: true, controls: [box(300, 60, 390, 170), box(100, 174, 390, 190)]}), {left: 96, top: 16}, 'above two');
  assert.deepEqual(place({beside: true, controls: [box(96, 0, 390, 400)]}), {left: 420, top: 164}, 'no room near it');
  assert.deepEqual(place({beside: true, size: {width: 390, height: 40}}), {left: 420, top: 164}, 'no room to the left');
  assert.deepEqual(place({beside: true, control: box(420, 780, 480, 800)}), {left: 96, top: 760}, 'at the lower edge');
});

test('a sentence of rows is never far from its sign, even where a place farther away covers nothing', () => {
  const rows = box(400, 400, 900, 700), fork = box(450, 480, 470, 500), row = box(400, 470, 900, 510), cover = box(400, 340, 900, 399);
  const boxes = {beside: true, toolbar: rows, control: fork, toolbars: [cover, box(400, 100, 900, 160)], size: {width: 390, height: 40}};
  assert.deepEqual(place({...boxes, controls: [row, cover, box(400, 704, 900, 740)]}), {left: 450, top: 296}, 'above what is over the rows');
  assert.deepEqual(place({...boxes, toolbar: box(400, -300, 900, 1100), controls: [row]}), {left: 450, top: 504}, 'below the sign');
});

test('where a row would be covered it stands to the left of its toolbar, and a row is covered rather than a control', () => {
  const low = box(400, 30, 900, 160), row = box(400, 160, 900, 200), boxes = {toolbar: low, others: [row]};
  assert.deepEqual(place(boxes), {left: 96, top: 110});
  assert.deepEqual(place({...boxes, others: [row, box(96, 115, 200, 125)]}), {left: 96, top: 129}, 'above or below what is there');
  assert.deepEqual(place({...boxes, others: [row, box(96, 0, 200, 800)]}), {left: 420, top: 164}, 'no room there');
  const narrow = {...boxes, size: {width: 390, height: 40}, toolbar: box(400, 100, 900, 160)}, head = box(400, 0, 900, 90);
  assert.deepEqual(place({...narrow, controls: [control, head]}), {left: 420, top: 164}, 'the row below rather than the control above');
});

test('it stays within the window and its toolbar', () => {
  assert.equal(place({control: box(860, 110, 890, 130)}).left, 600);
  assert.equal(place({toolbar: box(0, 100, 390, 160), control: box(300, 110, 380, 130), page: {width: 390, height: 800}}).left, 78);
  assert.equal(place({size: {width: 2000, height: 40}}).left, 12);
  assert.equal(place({toolbar: box(400, 700, 900, 790)}).top, 656, 'no room below');
});

test('where rows are higher than the window, it stands below or above what it explains', () => {
  const rows = box(400, -300, 900, 1100), share = box(420, 300, 480, 330);
  assert.deepEqual(place({toolbar: rows, control: share, controls: []}), {left: 420, top: 334});
  assert.equal(place({toolbar: rows, control: box(420, 760, 480, 790), controls: []}).top, 716, 'no room below');
  assert.equal(place({toolbar: rows, control: share, controls: [box(400, 334, 900, 370)]}).top, 256, 'a row is below');
});

test('in no place it covers its own toolbar, however crowded the page is', () => {
  let seed = 7;
  const random = most => { seed = seed * 16807 % 2147483647; return seed % most; };
  for (let turn = 0; turn < 500; turn += 1) {
    const top = random(700), own = box(random(400), top, 500 + random(400), top + 20 + random(100));
    const controls = Array.from({length: 12}, () => { const [x, y] = [random(900), random(760)]; return box(x, y, x + 80, y + 28); });
    const found = place({toolbar: own, control: box(own.left, top, own.left + 50, top + 20), controls});
    assert.ok(!meet(box(found.left, found.top, found.left + size.width, found.top + size.height), own));
  }
});
