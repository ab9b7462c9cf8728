// A text box with the page's own scripts, driven by a program: one action a line as JSON, one line of what then stands there.
import {createInterface} from 'node:readline';

import {TextBox} from './text_box.js';

const {TextOwner} = await import('../../../interface/web/ui/text_owner.js');
const {documentFrom} = await import('../../../interface/tabs/writer/document_record.js');
const PAUSE = 60_000;   // milliseconds between two actions: each is a step of its own

let clock = 1_700_000_000_000, box = new TextBox(), owner = new TextOwner(box);
Date.now = () => clock;

const ACTIONS = {
  anew() {
    owner.stop();
    box = new TextBox();
    owner = new TextOwner(box);
  },
  open: fields => owner.load(documentFrom(fields)),
  move: (start, end) => box.select(start, end),
  type(...letters) { for (const letter of letters) box.edit('insertText', letter); },
  paste: text => box.edit('insertFromPaste', text),
  correct: text => box.edit('insertReplacementText', text),
  compose: text => box.compose(text),
  cut: () => box.edit('deleteByCut', ''),
  delete: (back, forward) => box.edit(forward ? 'deleteContentForward' : 'deleteContentBackward', '', {back, forward}),
  accept: (text, options) => owner.accept(text, {...options, revision: owner.sync()}),
  undo: () => owner.undo(),
  redo: () => owner.redo(),
  reload: () => owner.load(documentFrom(JSON.parse(JSON.stringify(owner.state())))),
  // Go back to one of the moments; answers with its kind and its number of steps.
  reenter(pick) {
    const {moments} = owner, moment = moments[pick % moments.length];
    return moment && {kind: moment.kind, at: moment.at ?? null, done: owner.reenter(moment)};
  },
};

for await (const line of createInterface({input: process.stdin})) {
  const [name, ...options] = JSON.parse(line), answer = ACTIONS[name](...options) ?? null;
  clock += PAUSE;
  const {authors, spans, selection, text} = owner;
  process.stdout.write(`${JSON.stringify({text, selection, authors, spans, answer})}\n`);
}
process.exit();
