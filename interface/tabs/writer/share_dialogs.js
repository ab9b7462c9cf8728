// The dialog with a document's link, and the dialog that shows the instruction of an opened link.
/** @import {DocumentFields, RowEdit} from '../../web/core/types.d.ts' */
/** @import {DocumentKeeper, SheetHooks} from './document_keeper.js' */
import {MOST_LINK, encodeLink} from './document_link.js';
import {publicAddress} from '../../web/core/public_address.js';
import {announce} from '../../web/ui/announce.js';
import {copyText, find} from '../../web/ui/elements.js';
import {editsAfter} from '../../web/core/row_edits.js';
import {historyToReplay} from '../../web/core/replay.js';

const HOW_TO_SHARE = 'For somebody else, export a file, or ask the person who runs this page for a public address.';
/** @type {(what: 'text' | 'replay', length: number) => string} */
const tooLong = (what, length) => `As a link this ${what} would be ${Math.ceil(length / 1024)} KB long, and many programs cut links `
  + 'after 8 KB. Send a file instead.';

const OPENING = 'nothing is stored on a server. Opening it makes a new document and touches no other.';
const TEXT_CONTENTS = `The text, which words were chosen, changes of its rows, its settings and its instruction are in the link itself; ${OPENING} `
  + 'The steps in which it was written are not in it: a file has these (“Export”, then “Everything”).';
const REPLAY_CONTENTS = 'The text, every step that led to it, with what was typed and deleted again, its settings and its instruction '
  + `are in the link itself; ${OPENING} Steps that were undone are left out.`;
const NOT_MARKED = 'Which words were chosen did not fit into the link; a file holds it.';

/**
 * The link of a document, and whether it holds which words were chosen. Where it would be too long, the token ids of
 * accepted pieces are left out, then the chosen spans: they matter less than the text.
 * @param {DocumentFields} document
 * @param {RowEdit[]} edits of the rows after its end: a link opens with the caret there
 * @param {string} address
 */
async function linkOf(document, edits, address) {
  const {text, name, settings, model, instruction, instructed, spans, accepted} = document;
  const least = {
    text, name, settings, seed: settings?.seed ?? null, model, instruction: instructed ? instruction : null,
    edits: edits.length ? edits : undefined,
  };
  let link = '', marked = false;
  for (const more of [{spans, accepted}, {spans}, {}]) {
    link = address + await encodeLink({...least, ...more});
    marked = 'spans' in more || !spans.length;
    if (link.length <= MOST_LINK) break;
  }
  return {link, marked};
}

/**
 * The link that plays the making of a document.
 * @param {DocumentFields} document
 * @param {string} address
 */
async function replayLinkOf(document, address) {
  const {text, name, settings, model, instruction, instructed, spans, history} = document;
  const others = {name, settings, seed: settings?.seed ?? null, model, instruction: instructed ? instruction : null};
  return address + await encodeLink({text, spans, history: historyToReplay(history), play: true, ...others});
}

/**
 * The function that opens the dialog with the link; with `play` the link plays the making of the text.
 * @param {HTMLDialogElement} dialog
 * @param {{keeper: DocumentKeeper, hooks: SheetHooks}} parts
 * @returns {(options?: {play?: boolean}) => Promise<void>}
 */
export function shareDialog(dialog, {keeper, hooks}) {
  let playing = false;
  const field = find(dialog, '#share-link', HTMLInputElement), line = field.parentElement;
  const copyButton = find(dialog, '#share-copy'), status = find(dialog, '[role=status]'), warning = find(dialog, '.over'), note = find(dialog, '.address');
  const details = find(dialog, 'details', HTMLDetailsElement);
  /** @type {(parts: {link?: string, warns?: string, notes?: string, local?: boolean}) => void} `warns` stands beside the button of a file */
  const paint = ({link = '', warns = '', notes = '', local = false}) => {
    field.value = link;
    if (line) line.hidden = !link;
    warning.hidden = !warns;
    find(warning, '.sentence').textContent = warns;
    note.textContent = notes;
    note.hidden = !notes;
    details.hidden = !local;
    details.open = false;
    copyButton.textContent = 'Copy';
    announce(status, '');
  };
  copyButton.addEventListener('click', async () => {
    const copied = await copyText(field.value, dialog);
    copyButton.textContent = copied ? 'Copied' : 'Press Ctrl+C';
    announce(status, copied ? 'The link is copied.' : '', {again: true});
    if (!copied) field.select();
  });
  field.addEventListener('focus', () => field.select());
  find(dialog, '#share-file').addEventListener('click', () => {
    dialog.close();
    if (playing) keeper.exportReplay('json');
    else keeper.exportJson();
  });
  return async ({play = false} = {}) => {
    playing = play;
    find(dialog, '#share-title').textContent = play ? 'A link that plays how this text was made' : 'A link to this text';
    find(dialog, '.contents').textContent = play ? REPLAY_CONTENTS : TEXT_CONTENTS;
    const {address, sentence, local} = publicAddress(location, hooks.publicAddress());
    try {
      const document = {...keeper.snapshot(), name: keeper.givenName};
      const edits = editsAfter(keeper.draft.sideSteps, document.text, []);
      const {link, marked} = play ? {link: await replayLinkOf(document, address), marked: true} : await linkOf(document, edits, address);
      if (link.length > MOST_LINK) paint({warns: tooLong(play ? 'replay' : 'text', link.length)});
      else paint({link, warns: local ? `${sentence} ${HOW_TO_SHARE}` : sentence, notes: marked ? '' : NOT_MARKED, local});
    } catch (error) {
      paint({warns: /** @type {Error} */ (error).message});
    }
    dialog.showModal();
  };
}

/**
 * The function that shows an instruction; `use` is called only if the person agrees, and `done` in any case once the dialog is
 * closed.
 * @param {HTMLDialogElement} dialog
 * @returns {(instruction: string, use: () => void, done: () => void) => void}
 */
export function offerDialog(dialog) {
  let useIt = () => {}, close = () => {};
  find(dialog, '#offer-use').addEventListener('click', () => {
    dialog.close();
    useIt();
  });
  find(dialog, '#offer-leave').addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => close());
  return (instruction, use, done) => {
    find(dialog, '.offered').textContent = instruction;
    [useIt, close] = [use, done];
    dialog.showModal();
  };
}
