// Made-up trees and drawn views for tests of the tree view.
import {shapeRows} from '../../../interface/web/core/branch_rows.js';

const WORDS = ['a', ' the', ' keeper', ' Wonderful', ', ', '.', ' 中文', ' 🙂', '\n', ' MMMM WWWW', ' <b>&"'];

// A drawn view as the branch view holds it: rows with their revision.
export function drawnOf(view, {revision = 3, settings = {}, pinned = null} = {}) {
  const drawn = shapeRows(view, settings, pinned);
  return {...drawn, rows: drawn.rows.map(row => ({...row, revision}))};
}

// A random tree: the odds of the children of a node add up to at most 1; some have none; some nodes were reached.
export function randomTree(dice, {most = 60, path = 'r'} = {}) {
  const root = {key: path, text: ' start', state: 'typed', odds: null, children: [], rest: null, reached: true};
  const open = [root];
  let count = 1;
  while (open.length && count < most) {
    const node = open.splice(dice.upTo(open.length - 1), 1)[0];
    let left = 1;
    for (let index = dice.upTo(5); index >= 0 && count < most; index -= 1, count += 1) {
      const known = dice.chance(0.85), p = known ? left * dice.number() : 0;
      left -= p;
      const child = {
        key: `${node.key}/${index}`, text: dice.among(WORDS), state: dice.among(['ahead', 'seen', 'left', 'chosen', 'typed', 'end', 'rest']),
        odds: known ? {p} : null, children: [], rest: null, ...(dice.chance(0.2) ? {reached: true} : {}),
      };
      node.children.push(child);
      if (child.state !== 'rest' && child.state !== 'end') open.push(child);
    }
  }
  if (dice.chance(0.5)) open.at(-1) && (open.at(-1).here = true);
  return root;
}

export const allNodes = root => [root, ...root.children.flatMap(allNodes)];
