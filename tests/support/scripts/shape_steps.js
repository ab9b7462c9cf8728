// Reads [{view, pinned, growing, settings}] as JSON, and writes what the page draws of each.
import {shapeRows} from '../../../interface/web/core/branch_rows.js';

let given = '';
for await (const chunk of process.stdin) given += chunk;
const drawn = JSON.parse(given).map(({view, pinned, growing, settings}) => {
  const {rows, coverage, rest, others} = shapeRows(view, settings, pinned, growing);
  return {
    coverage, rest, others: others.map(({ids, text, odds, otherwise = false}) => ({ids, text, odds, otherwise})),
    rows: rows.map(({ids, share, extra, next_word: word}) => ({ids, share, extra, word: word?.text ?? null})),
  };
});
process.stdout.write(JSON.stringify(drawn));
