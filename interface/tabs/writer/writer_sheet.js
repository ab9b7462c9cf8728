// The writer's sheet: the draft, the open document, the toolbar and the dialogs.
/** @import {SheetHooks} from './document_keeper.js' */
/** @import {NoticeAction} from '../../web/ui/notice.js' */
import {DocumentKeeper} from './document_keeper.js';
import {DocumentsDialog, historyDialog} from './list_dialogs.js';
import {Instruction} from './instruction.js';
import {Notice} from '../../web/ui/notice.js';
import {TextOwner} from '../../web/ui/text_owner.js';
import {TextMirror} from '../../web/ui/text_mirror.js';
import {closeOnClick, find, findAll, setAttribute} from '../../web/ui/elements.js';
import {connectCopyButton, connectUndoButtons} from '../../web/ui/sheet_buttons.js';
import {dispatch, onDetail} from '../../web/ui/events.js';
import {fileName} from './document_files.js';
import {isPlayable} from '../../web/core/replay.js';
import {offerDialog, shareDialog} from './share_dialogs.js';
import {replayDialog} from './replay_dialog.js';

/** @type {SheetHooks} */
const NO_HOOKS = {
  settings: () => null, applySettings: () => {}, seen: () => [], applySeen: () => {}, view: () => null, tree: async () => null, model: () => null,
  publicAddress: () => null, also: () => [],
};

/** @type {Record<string, string>} */
const SAVED = {saved: 'saved in this browser', saving: 'saving …', unsaved: 'not saved'};

/**
 * @typedef {object} SheetParts
 * @property {DocumentKeeper} keeper
 * @property {TextOwner} draft
 * @property {Notice} notice
 * @property {(options?: {play?: boolean}) => unknown} share opens the dialog of a link
 * @property {() => void} play opens the dialog of the replay
 */

/** @param {HTMLElement} sheet @param {SheetParts} parts */
function connectHistory(sheet, {draft, notice}) {
  connectUndoButtons(draft, find(sheet, '#undo'), find(sheet, '#redo'));
  find(sheet, '#history').addEventListener('click', historyDialog(find(sheet, '#history-dialog', HTMLDialogElement), {draft, notice}));
}

/** @param {HTMLElement} sheet @param {SheetParts} parts */
function connectStatus(sheet, {keeper, draft, notice}) {
  const kept = find(sheet, '.kept'), documents = find(sheet, '#documents'), {library} = keeper;
  const paint = () => {
    find(documents, '.name').textContent = keeper.name;
    documents.ariaLabel = `Documents: ${keeper.name}`;
    kept.dataset.state = library.state;
    kept.textContent = SAVED[library.state];
  };
  onDetail(library, 'state', ({state, sentence}) => {
    paint();
    if (state === 'unsaved' && notice.text !== sentence) {
      notice.show(sentence, library.losesAnother ? null : {label: 'Export', run: () => keeper.exportJson()});
    }
    if (state === 'saved' && notice.text.startsWith('Not saved')) notice.clear();
  });
  for (const event of ['copied', 'forgotten']) library.addEventListener(event, paint);
  onDetail(draft, 'change', ({kind}) => { if (kind === 'load') paint(); });
}

/** @param {HTMLElement} sheet @param {SheetParts} parts */
function connectFiles(sheet, {keeper}) {
  const input = find(sheet, '#import input', HTMLInputElement);
  /** @param {Iterable<File> | null | undefined} list */
  const importAll = async list => { for (const file of [...list ?? []]) await keeper.importFile(file); };
  input.addEventListener('change', async () => {
    await importAll(input.files);
    input.value = '';
  });
  connectFormats(find(sheet, '#formats-dialog', HTMLDialogElement), find(sheet, '#export'), keeper);
  /** @param {DragEvent} event */
  const bringsFiles = event => event.dataTransfer?.types.includes('Files');
  sheet.addEventListener('dragover', event => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    sheet.classList.add('dropping');
  });
  for (const name of ['dragleave', 'drop']) sheet.addEventListener(name, () => sheet.classList.remove('dropping'));
  sheet.addEventListener('drop', async event => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    await importAll(event.dataTransfer?.files);
  });
}

/** @param {HTMLDialogElement} dialog @param {HTMLElement} button @param {DocumentKeeper} keeper */
function connectFormats(dialog, button, keeper) {
  button.addEventListener('click', () => {
    find(dialog, '.making').hidden = !isPlayable(keeper.draft.state());
    dialog.showModal();
  });
  /** @type {Record<string, () => unknown>} */
  const formats = {
    all: () => keeper.exportJson(), text: () => keeper.exportText(),
    'authorship-md': () => keeper.exportAuthorship('md'), 'authorship-html': () => keeper.exportAuthorship('html'),
    'authorship-json': () => keeper.exportAuthorship('json'),
    'replay-html': () => keeper.exportReplay('html'), 'replay-json': () => keeper.exportReplay('json'),
  };
  for (const choice of findAll(dialog, '[data-format]')) choice.addEventListener('click', () => {
    dialog.close();
    formats[choice.dataset.format ?? '']?.();
  });
}

/** @param {DocumentKeeper} keeper */
function connectPage(keeper) {
  addEventListener('beforeunload', event => { if (keeper.unsafe) event.preventDefault(); });
  addEventListener('hashchange', () => keeper.openLink());
}

/** @param {HTMLElement} sheet @param {SheetParts} parts */
function connectDialogs(sheet, {draft, notice, keeper, share, play}) {
  for (const dialog of sheet.querySelectorAll('dialog')) closeOnClick(dialog);
  const documents = new DocumentsDialog(find(sheet, '#documents-dialog', HTMLDialogElement), {keeper, opened: find(sheet, '.opened')});
  find(sheet, '#documents').addEventListener('click', () => documents.open());
  find(sheet, '#help').addEventListener('click', () => find(sheet, '#help-dialog', HTMLDialogElement).showModal());
  find(sheet, '#share').addEventListener('click', () => share());
  find(sheet, '#replay').addEventListener('click', () => {
    find(sheet, '#history-dialog', HTMLDialogElement).close();
    play();
  });
  connectCopyButton(draft, find(sheet, '#copy'), notice);
  const more = find(sheet, '#more');
  more.addEventListener('click', () => more.setAttribute('aria-expanded', String(more.parentElement?.classList.toggle('opened'))));
}

/**
 * Connect a sheet's elements. Returns the draft, the library and what other parts of the page need. The draft also
 * dispatches `instructing` while an instruction is written, and `instruction` {instruction} when another is in force.
 * @param {{element: HTMLElement, hooks?: Partial<SheetHooks>}} options
 */
export function mountSheet({element, hooks: given = {}}) {
  const hooks = {...NO_HOOKS, ...given};
  const sheet = element.matches('.sheet') ? element : find(element, '.sheet');
  const draft = new TextOwner(find(sheet, '#document textarea', HTMLTextAreaElement), {also: () => [sheet, ...hooks.also()]});
  const notice = new Notice(find(sheet, '#notice'));
  const mirror = new TextMirror(draft, {mirror: find(sheet, '.mirror'), strip: find(sheet, '.strip'), count: find(sheet, '.count'), caretNote: find(sheet, '.caret-note')});
  const instruction = new Instruction({
    toggle: find(sheet, '#instruction-toggle'), off: find(sheet, '#as-is'), hint: find(sheet, '#continues'),
    field: find(sheet, '#instruction', HTMLTextAreaElement), area: find(sheet, '.instruction-area'), choice: find(sheet, '.going'),
  });
  instruction.addEventListener('changing', () => dispatch(draft, 'instructing'));
  const describe = () => setAttribute(draft.box, 'aria-describedby', instruction.hints ? 'continues tab-key' : 'tab-key');
  instruction.addEventListener('paint', describe);
  onDetail(instruction, 'change', detail => {
    describe();
    dispatch(draft, 'instruction', detail);
  });
  const offer = offerDialog(find(sheet, '#offer-dialog', HTMLDialogElement));
  const play = replayDialog(find(sheet, '#replay-dialog', HTMLDialogElement), {keeper: () => keeper, share: () => share({play: true})});
  /** @type {DocumentKeeper} */
  const keeper = new DocumentKeeper({draft, instruction, notice, hooks, offer, play});
  const share = shareDialog(find(sheet, '#share-dialog', HTMLDialogElement), {keeper, hooks}), parts = {keeper, draft, notice, share, play};
  connectHistory(sheet, parts);
  connectStatus(sheet, parts);
  connectFiles(sheet, parts);
  connectDialogs(sheet, parts);
  connectPage(keeper);
  return {
    draft,
    library: keeper.library,
    ready: keeper.start(),
    ghost: (/** @type {string | null} */ text) => mirror.ghost(text),
    get ghostShown() { return mirror.ghostShown; },
    notice: (/** @type {string} */ sentence, /** @type {NoticeAction | null} */ action = null) => notice.show(sentence, action),
    instruction: () => instruction.value,
    compare: (/** @type {boolean} */ active) => instruction.giveWay(active),
    fileName: (/** @type {string} */ ending) => fileName(keeper.name, ending),
    settingsChanged: () => keeper.settingsChanged(),
    seenChanged: () => keeper.library.besideChanged(),
  };
}
