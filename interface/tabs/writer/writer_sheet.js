// The paper with everything on it: mountPaper connects the draft, its keeping, the toolbar and the dialogs.
import {DocumentsDialog, historyDialog} from './list_dialogs.js';
import {TextDraft} from '../../web/ui/text_draft.js';
import {Instruction} from './instruction.js';
import {DocumentKeeper} from './document_keeper.js';
import {Notice} from '../../web/ui/notice.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {closeOnClick} from '../../web/ui/elements.js';
import {connectCopyButton, connectUndoButtons} from '../../web/ui/sheet_buttons.js';
import {offerDialog, shareDialog} from './share_dialogs.js';

// What is not the paper's own; a caller gives what it has.
const HOOKS = {
  settings: () => null,          // of the branches, as plain JSON; `seed` among them
  applySettings: () => {},       // the same, from a document, a file or a link: to be checked by the caller
  view: () => null,              // the branches that are shown, for an export
  tree: async () => null,        // the tree on the server, for an export
  model: () => null,             // its name
  publicAddress: () => null,     // the configured one, if any
  also: () => [],                // elements in which Ctrl+Z is the draft's too: the branches
};

const SAVED = {saved: 'saved here, in this browser', saving: 'saving …', unsaved: 'not saved'};

function history(find, draft, notice) {
  connectUndoButtons(draft, find('#undo'), find('#redo'));
  find('#history').addEventListener('click', historyDialog(find('#history-dialog'), {draft, notice}));
}

function status(find, {keeping, draft, notice}) {
  const kept = find('.kept'), name = find('#documents .name'), {shelf} = keeping;
  const paint = () => {
    name.textContent = keeping.name;
    kept.dataset.state = shelf.state;
    kept.textContent = SAVED[shelf.state];
  };
  shelf.addEventListener('state', ({detail: {state, sentence}}) => {
    paint();
    if (state === 'unsaved' && notice.sentence.textContent !== sentence) {
      notice.say(sentence, {label: 'Export', run: () => keeping.exportJson()});
    }
    if (state === 'saved' && notice.sentence.textContent.startsWith('Not saved')) notice.clear();
  });
  for (const event of ['copied', 'forgotten']) shelf.addEventListener(event, paint);
  draft.addEventListener('change', ({detail}) => detail.kind === 'load' && paint());
}

function files(find, element, keeping) {
  const input = find('#import input');
  input.addEventListener('change', async () => {
    for (const file of [...input.files]) await keeping.importFile(file);
    input.value = '';
  });
  find('#export').addEventListener('click', () => keeping.exportJson());
  find('#export-text').addEventListener('click', () => keeping.exportText());
  const brings = event => event.dataTransfer?.types.includes('Files');
  element.addEventListener('dragover', event => {
    if (!brings(event)) return;
    event.preventDefault();
    element.classList.add('dropping');
  });
  for (const name of ['dragleave', 'drop']) element.addEventListener(name, () => element.classList.remove('dropping'));
  element.addEventListener('drop', async event => {
    if (!brings(event)) return;
    event.preventDefault();
    for (const file of [...event.dataTransfer.files]) await keeping.importFile(file);
  });
}

function page(keeping, signal) {
  addEventListener('beforeunload', event => keeping.unsafe && event.preventDefault(), {signal});
  addEventListener('hashchange', () => keeping.openLink(), {signal});
}

function rest(find, {draft, notice, keeping, hooks}) {
  for (const dialog of find.all('dialog')) closeOnClick(dialog);
  const documents = new DocumentsDialog(find('#documents-dialog'), keeping);
  find('#documents').addEventListener('click', () => documents.open());
  find('#help').addEventListener('click', () => find('#help-dialog').showModal());
  find('#share').addEventListener('click', shareDialog(find('#share-dialog'), {keeping, hooks}));
  connectCopyButton(draft, find('#copy'), notice);
  const more = find('#more');
  more.addEventListener('click', () => more.setAttribute('aria-expanded', more.parentElement.classList.toggle('opened')));
}

// `element` holds the template. Returned are the draft and the shelf, and what others may say and ask:
// ghost(text), ghostShown, notice(sentence, action), instruction(), settingsChanged(), ready, stop().
// The draft also dispatches `instruction` {instruction} when another one is in force.
export function mountSheet({element, hooks: given = {}}) {
  const hooks = {...HOOKS, ...given}, leaving = new AbortController();
  const sheet = element.matches('.sheet') ? element : element.querySelector('.sheet');
  const find = Object.assign(selector => sheet.querySelector(selector), {all: selector => sheet.querySelectorAll(selector)});
  const draft = new TextDraft(find('#document textarea'), {also: () => [sheet, ...hooks.also()]});
  const notice = new Notice(find('#notice'));
  const paper = new TextMirror(draft, {mirror: find('.mirror'), strip: find('.strip'), count: find('.count')});
  const instruction = new Instruction({
    toggle: find('#instruction-toggle'), off: find('#as-is'), field: find('#instruction'), area: find('.instruction-area'),
  });
  instruction.addEventListener('changing', () => draft.dispatchEvent(new CustomEvent('instructing')));
  instruction.addEventListener('change', ({detail}) => draft.dispatchEvent(new CustomEvent('instruction', {detail})));
  const keeping = new DocumentKeeper({draft, instruction, notice, hooks, offer: offerDialog(find('#offer-dialog'))});
  history(find, draft, notice);
  status(find, {keeping, draft, notice});
  files(find, sheet, keeping);
  rest(find, {draft, notice, keeping, hooks});
  page(keeping, leaving.signal);
  return {
    draft,
    shelf: keeping.shelf,
    ready: keeping.start(),
    ghost: text => paper.ghost(text),
    get ghostShown() { return paper.ghostShown; },
    notice: (sentence, action) => notice.say(sentence, action),
    instruction: () => instruction.value,
    settingsChanged: () => keeping.settingsChanged(),
    stop: () => { draft.stop(); leaving.abort(); },
  };
}
